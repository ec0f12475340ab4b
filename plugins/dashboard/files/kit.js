// The parts that pages are made of. Text only ever becomes text: nothing here parses HTML, so what a memory says is never run.

import { ago, count, datetime, number, shortened } from "./format.js";
import { worded } from "./wording.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set([
  "value",
  "checked",
  "disabled",
  "selected",
  "hidden",
  "required",
  "multiple",
  "open",
  "indeterminate",
  "readOnly",
]);

// --- elements ---------------------------------------------------------------------------------------------------------

// h("p", {class: "note", onclick: f, css: {"--share": 0.4}, dataset: {id}}, "text", node, [more], null) -> element
export function h(tag, attributes, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return furnished(document.createElementNS(SVG, tag), attributes, children);
}

function furnished(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [property, setting] of Object.entries(value)) element.style.setProperty(property, setting);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "href" && !/^(\/|#|https?:|mailto:|blob:)/.test(value)) throw new Error(`no link leads to ${value}`);
    else if (PROPERTIES.has(name) && name in element) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

let numbered = 0;
export const newId = (prefix = "id") => `${prefix}-${++numbered}`;

// A link to another view: link("/memories", "All memories").
export const link = (path, ...children) => h("a", { href: "/dashboard" + path }, children);
export const badge = (text, tone = "plain") => h("span", { class: `badge ${tone}` }, text);
export const tags = (texts) => texts.map((text) => h("span", { class: "tag" }, text));
export const time = (iso, text = ago(iso)) => (iso ? h("time", { datetime: iso, title: datetime(iso) }, text) : "–");
export const mono = (text, title) => h("code", { title }, text);
export const identifier = (id) => h("span", { class: "identifier" }, mono(shortened(id), id), copyButton(id, "Copy id"));
export const meter = (share, label) => h("progress", { class: "meter", max: 1, value: Math.min(1, share || 0), "aria-label": label });

// Names and what they are: facts([["Created", time(at)], ...]); null values are left out.
export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value != null && value !== "")
      .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );

export function pageHead(title, { subtitle, actions = [] } = {}) {
  return h(
    "header",
    { class: "page-head" },
    h("div", null, h("h1", { tabindex: "-1" }, title), subtitle && h("p", { class: "subtitle" }, subtitle)),
    h("div", { class: "actions" }, actions),
  );
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title && h("h2", null, title), children);
}

// A figure with its name, and what it says more exactly below: stat("Memories", "1,204", "in 3 collections").
export const stat = (name, figure, note) =>
  h(
    "div",
    { class: "stat" },
    h("span", { class: "stat-name" }, name),
    h("strong", null, figure),
    note && h("span", { class: "note" }, note),
  );

// --- states -----------------------------------------------------------------------------------------------------------

export const loading = (text = "Loading…") => h("div", { class: "state", role: "status" }, h("span", { class: "spinner" }), text);

export const empty = (title, text, ...actions) =>
  h("div", { class: "state empty" }, h("strong", null, title), text && h("p", null, text), actions);

// What an error says, with links to the views that it speaks of.
export const told = (error) => worded(error).map((part) => (Array.isArray(part) ? link(part[1], part[0]) : part));

export function failure(error, retry) {
  return h(
    "div",
    { class: "state failure", role: "alert" },
    h("strong", null, error.status === 404 ? "Not found" : "That did not work"),
    h("p", null, told(error)),
    error.requestId && h("p", { class: "note" }, "Request ", mono(error.requestId)),
    retry && button("Try again", retry),
  );
}

export const isAbort = (error) => error?.name === "AbortError";

// Show `loading` in root until the promise of `work` is kept, then what `show` makes of it, or the error with a way to try again.
export async function load(root, work, show, { signal } = {}) {
  replace(root, loading());
  try {
    const value = await work();
    if (!signal?.aborted) replace(root, await show(value));
  } catch (error) {
    if (isAbort(error) || signal?.aborted) return;
    replace(
      root,
      failure(error, () => load(root, work, show, { signal })),
    );
  }
}

// --- buttons, toasts, dialogs -----------------------------------------------------------------------------------------

// While what it does is under way it cannot be pressed again; what goes wrong is told in a toast.
export function button(label, onclick, { kind = "", type = "button", title, disabled = false, ...further } = {}) {
  const made = h("button", { type, class: `button ${kind}`, title, disabled, ...further }, label);
  made.addEventListener("click", async (event) => {
    if (!onclick || made.hasAttribute("aria-busy")) return; // not disabled: it keeps the focus, and gets it back from a dialog
    made.setAttribute("aria-busy", "true");
    try {
      await onclick(event);
    } catch (error) {
      if (!isAbort(error)) toast(told(error), { tone: "bad" });
    } finally {
      made.removeAttribute("aria-busy");
    }
  });
  return made;
}

export function copyButton(text, label = "Copy") {
  const copy = async () => {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyBySelection(text);
    toast("Copied.");
  };
  return button(
    svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: "M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z" })),
    copy,
    { kind: "quiet small", title: label, "aria-label": label },
  );
}

// Browsers open the clipboard on HTTPS and on this machine only.
function copyBySelection(text) {
  const area = h("textarea", { class: "offscreen", value: text });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

const TOAST_MS = 5_000;

// action: {label, run}, such as to undo; the toast then stays longer.
export function toast(text, { tone = "", action, ms = action ? 2 * TOAST_MS : TOAST_MS } = {}) {
  const made = h("div", { class: `toast ${tone}` }, h("span", null, text));
  const gone = () => made.remove();
  if (action) made.append(button(action.label, async () => (gone(), await action.run()), { kind: "quiet" }));
  made.append(button("✕", gone, { kind: "quiet small", "aria-label": "Dismiss" }));
  document.getElementById("toasts").append(made);
  setTimeout(gone, ms);
}

// A modal dialog; the browser keeps the focus inside and gives it back. body: node, or close -> node. -> promise of what `close` was given.
// stays: going back leaves the dialog where it is; a text asks before the dialog is closed otherwise than by what is in it.
export function dialog(title, body, { wide = false, stays = false } = {}) {
  return new Promise((resolve) => {
    const heading = newId("dialog");
    let over = false;
    let asking = false;
    const close = (value) => ((over = true), made.close(), made.remove(), resolve(value));
    const dismiss = async () => {
      if (asking) return;
      asking = true;
      const sure = typeof stays !== "string" || (await confirm("Close this?", stays, { label: "Close it" }));
      asking = false;
      if (sure) close(undefined);
    };
    const made = h("dialog", {
      class: wide ? "wide" : "",
      "aria-labelledby": heading,
      dataset: stays ? { stays: "" } : {},
      oncancel: (event) => (event.preventDefault(), dismiss()),
      onback: () => typeof stays === "string" && dismiss(),
    });
    made.append(
      h(
        "div",
        { class: "dialog-head" },
        h("h2", { id: heading }, title),
        button("✕", dismiss, { kind: "quiet small", "aria-label": "Close" }),
      ),
      typeof body === "function" ? body(close) : body,
    );
    // A browser closes what is dismissed twice in a row, and asks nobody.
    made.addEventListener("close", () => (stays && !over ? made.showModal() : (made.remove(), resolve(undefined))));
    document.body.append(made);
    made.showModal();
  });
}

// -> promise of whether it was confirmed. typed: what has to be typed first.
export async function confirm(title, text, { label = "Delete", kind = "danger", typed } = {}) {
  return (
    true ===
    (await dialog(title, (close) => {
      const word = h("input", { "aria-label": typed && `Type ${typed} to confirm`, autocomplete: "off", spellcheck: "false" });
      const yes = button(label, () => close(true), { kind, disabled: !!typed });
      word.addEventListener("input", () => (yes.disabled = word.value.trim() !== typed));
      return h(
        "div",
        { class: "stack" },
        h("p", null, text),
        typed && h("label", { class: "field" }, h("span", null, "Type ", mono(typed), " to confirm"), word),
        h(
          "div",
          { class: "row end" },
          button("Cancel", () => close(false)),
          yes,
        ),
      );
    }))
  );
}

// --- tabs -------------------------------------------------------------------------------------------------------------

// views: [[label, () -> node], ...]; each is made when it is first looked at.
export function tabs(views, chosen = 0) {
  const id = newId("tabs");
  const panel = h("div", { role: "tabpanel", id: `${id}-panel`, tabindex: "0" });
  const made = new Map();
  const choose = (index, focus = false) => {
    if (!made.has(index)) made.set(index, views[index][1]());
    replace(panel, made.get(index));
    heads.forEach((head, at) => (head.setAttribute("aria-selected", String(at === index)), (head.tabIndex = at === index ? 0 : -1)));
    panel.setAttribute("aria-labelledby", heads[index].id);
    if (focus) heads[index].focus();
  };
  const heads = views.map(([label], index) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `${id}-${index}`,
        "aria-controls": `${id}-panel`,
        onclick: () => choose(index),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step) choose((index + step + views.length) % views.length, true);
        },
      },
      label,
    ),
  );
  choose(chosen);
  return h("div", { class: "tabs" }, h("div", { role: "tablist" }, heads), panel);
}

// --- forms ------------------------------------------------------------------------------------------------------------

// fields: {name, label, type, value, options, help, required, placeholder, ...attributes}
//   type   any of <input>'s, or "textarea", "select" (options: [[value, label], ...]), "checks" (several of the options), "check", "tags"
//          A select keeps a value that is none of its options: what was asked for is asked for, and whoever answers says what is wrong.
// onsubmit gets {name: value}: numbers as numbers or null, check as boolean, checks and tags as lists, everything else as text. What the
// service finds wrong with a field is shown there, everything else above the button. The element has .values(), .changed(), which are
// those that are not as they were at first, and .control(name).
//   arrange  (row: name -> element, button, problem) -> nodes, for another order than one below the other
export function form(fields, { submit = "Save", kind = "primary", onsubmit, cancel, inline = false, arrange }) {
  const controls = new Map(fields.map((field) => [field.name, control(field)]));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: `button ${kind}` }, submit);
  const made = h(
    "form",
    { class: inline ? "inline" : "stack", novalidate: true },
    arrange
      ? arrange((name) => controls.get(name).row, send, problem)
      : [[...controls.values()].map((one) => one.row), problem, h("div", { class: "row end" }, cancel && button("Cancel", cancel), send)],
  );
  made.values = () => Object.fromEntries([...controls].map(([name, one]) => [name, one.read()]));
  made.control = (name) => controls.get(name).input;
  const first = made.values();
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  made.changed = () => Object.fromEntries(Object.entries(made.values()).filter(([name, value]) => !same(value, first[name])));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    const wrong = [...controls.values()].filter((one) => !one.check());
    if (wrong.length) return wrong[0].input.focus();
    send.disabled = true;
    send.setAttribute("aria-busy", "true");
    try {
      await onsubmit(made.values(), made);
    } catch (error) {
      if (isAbort(error)) return;
      const place = controls.get((error.param ?? "").split(".").find((part) => controls.has(part)));
      if (place) (place.complain(error.details?.[0]?.msg ?? told(error)), place.input.focus());
      else (replace(problem, told(error)), (problem.hidden = false));
    } finally {
      send.disabled = false;
      send.removeAttribute("aria-busy");
    }
  });
  return made;
}

function control({ name, label, type = "text", value, options = [], help, ...attributes }) {
  const id = newId(name);
  const said = h("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const shared = { id, name, "aria-describedby": `${help ? id + "-help " : ""}${id}-problem`, ...attributes };
  const choices = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  if (type === "select" && value && !choices.some(([option]) => option === value)) choices.push([value, value]);
  const explained = help && h("p", { class: "note", id: `${id}-help` }, help);
  const complain = (text) => {
    replace(said, text);
    said.hidden = !text;
    input.toggleAttribute("aria-invalid", !!text);
  };
  const check = () => {
    complain(input.checkValidity?.() === false ? input.validationMessage : "");
    return said.hidden;
  };
  let input, row, read;
  if (type === "checks") {
    const boxes = choices.map(([option]) => h("input", { type: "checkbox", value: option, checked: (value ?? []).includes(option) }));
    input = h(
      "fieldset",
      { id },
      h("legend", null, label),
      choices.map(([, text], index) => h("label", { class: "check" }, boxes[index], h("span", null, text))),
    );
    row = h("div", { class: "field" }, input, explained, said);
    read = () => boxes.filter((box) => box.checked).map((box) => box.value);
  } else if (type === "check") {
    input = h("input", { type: "checkbox", ...shared, checked: !!value });
    row = h("div", { class: "field" }, h("label", { class: "check" }, input, h("span", null, label)), explained, said);
    read = () => input.checked;
  } else {
    if (type === "select")
      input = h(
        "select",
        shared,
        choices.map(([option, text]) => h("option", { value: option, selected: option === value }, text)),
      );
    else if (type === "textarea") input = h("textarea", { rows: 4, ...shared, value });
    else
      input = h("input", { type: type === "tags" ? "text" : type, ...shared, value: type === "tags" ? tagsText(value ?? []) : value });
    row = h("div", { class: "field" }, h("label", { for: id }, label), input, explained, said);
    read = () => {
      if (type === "tags") return tagsOf(input.value);
      if (type === "number" || type === "range") return input.value === "" ? null : Number(input.value);
      return input.value;
    };
  }
  input.addEventListener("input", () => complain(""));
  return { row, input, read, check, complain };
}

// Tags as a field has them: commas between them, and quotes around one that holds a comma or begins with a quote.
const tagsText = (found) => found.map((tag) => (/^["\s]|[,]|\s$/.test(tag) ? `"${tag.replaceAll('"', '""')}"` : tag)).join(", ");

function tagsOf(text) {
  const found = text.matchAll(/\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]+))(?:,|$)/g);
  const each = [...found].map(([, quoted, plain]) => (quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"')));
  return [...new Set(each.filter(Boolean))];
}

// --- tables of many rows ----------------------------------------------------------------------------------------------

// A list of the API, a page at a time: what is not asked for is not loaded, so 100,000 rows are as quick as ten.
//   columns  [{label, cell: row -> node or text, kind: "number" | "wide" | "actions"}]
//   fetch    (cursor or undefined) -> promise of {items, next_cursor, total_count}
//   row      function of a row -> node, instead of columns: a list
//   empty    node shown when there is nothing
//   noun     [one, many], to say how many there are
// The element has .reload().
export function pages({ columns, row, fetch, empty: nothing, noun = ["row", "rows"], signal }) {
  const root = h("div", { class: "pages" });
  root.reload = () =>
    load(
      root,
      () => fetch(undefined),
      (first) => {
        if (!first.items.length) return nothing ?? empty(`No ${noun[1]} yet`);
        let shown = 0;
        const body = columns ? h("tbody") : h("ul", { class: "list" });
        const foot = h("div", { class: "pages-foot" });
        const add = (page) => {
          shown += page.items.length;
          body.append(...page.items.map((item) => (columns ? tableRow(columns, item) : h("li", null, row(item)))));
          const total = page.total_count ?? (page.next_cursor ? null : shown);
          const told =
            total == null
              ? `${count(shown, ...noun)} shown`
              : shown < total
                ? `${number(shown)} of ${count(total, ...noun)}`
                : count(total, ...noun);
          replace(
            foot,
            h("span", { class: "note", role: "status" }, told),
            page.next_cursor && button("Show more", async () => add(await fetch(page.next_cursor))),
          );
        };
        add(first);
        return [
          columns
            ? tableFrame(noun[1], columns, body)
            : body,
          foot,
        ];
      },
      { signal },
    );
  root.reload();
  return root;
}

function tableRow(columns, item) {
  return h(
    "tr",
    null,
    columns.map(({ cell, kind, label }) => h("td", { class: kind, dataset: { label } }, h("div", null, cell(item)))),
  );
}

function tableFrame(label, columns, body) {
  const unsaid = (kind) => h("span", { class: "offscreen" }, kind === "actions" ? "Actions" : "Choose");
  const heads = columns.map(({ label, kind }) => h("th", { scope: "col", class: kind }, label || unsaid(kind)));
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": label },
    h("table", null, h("thead", null, h("tr", null, heads)), body),
  );
}

// A table of rows that are all here.
export function table(columns, rows) {
  const body = h(
    "tbody",
    null,
    rows.map((item) => tableRow(columns, item)),
  );
  const labels = columns.map(({ label }) => label).filter(Boolean);
  return tableFrame(labels.join(", "), columns, body);
}
