// The shell: who is signed in, which view an address means, and the frame around it.
//
// A view is a module of pages/, listed in pages/index.js:
//   export const title = "Memories";
//   export async function render(root, { api, session, route, signal }) { ... }
// root    an element of its own, empty; render fills it and may return before everything is there
// route   {path, params, query: URLSearchParams, go(path), note(changes)}; note changes the query in the address bar and nothing else
// signal  is aborted when the view is left: pass it to api calls, and stop timers with it

import { Api, Session } from "./api.js";
import { button, dialog, failure, h, isAbort, loading, pageHead, replace, svg, toast, told } from "./kit.js";
import { GROUPS, PAGES } from "./pages/index.js";

const BASE = "/dashboard";
const HOME = "/";
const SIGN_IN = "/sign-in";

const session = new Session();
const api = new Api(session);
const app = document.getElementById("app");
let frame = null;
let left = new AbortController();
let shown = location.href;
let position = history.state?.at ?? 0; // of what is shown among the page's own entries of the history
let returning = false;
let arrived = false; // from the second view on, its heading takes the focus, so that it is read out

// --- addresses --------------------------------------------------------------------------------------------------------

const patterns = PAGES.map((page) => {
  const names = [];
  const source = page.path.replace(/:(\w+)/g, (_, name) => (names.push(name), "([^/]+)"));
  return { page, names, expression: new RegExp(`^${source}/?$`) };
});

function find(path) {
  for (const { page, names, expression } of patterns) {
    const found = expression.exec(path);
    const values = found?.slice(1).map(decoded);
    if (values && !values.includes(null)) return { page, params: Object.fromEntries(names.map((name, index) => [name, values[index]])) };
  }
  return null;
}

// null: no text was ever written like this.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

function here() {
  return location.pathname.slice(BASE.length) || HOME;
}

// Go to a view: its path with a query, without /dashboard.
function go(path, { replaced = false } = {}) {
  if (!replaced) position += 1;
  history[replaced ? "replaceState" : "pushState"]({ at: position }, "", BASE + path);
  return show();
}

function note(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) value == null || value === "" ? query.delete(name) : query.set(name, value);
  history.replaceState(history.state, "", location.pathname + (query.size ? "?" + query : ""));
  shown = location.href;
}

// --- showing a view ---------------------------------------------------------------------------------------------------

async function show() {
  left.abort();
  left = new AbortController();
  const { signal } = left;
  const path = here();
  const query = new URLSearchParams(location.search);
  shown = location.href;
  document.querySelectorAll("dialog[open]:not([data-stays])").forEach((open) => open.close());
  const found = find(path);
  if (!session.account) {
    if (path !== SIGN_IN && !found?.page.open) return go(`${SIGN_IN}?next=${encodeURIComponent(path + location.search)}`, { replaced: true });
  } else if (path === SIGN_IN && !query.has("forgotten")) {
    const next = query.get("next") ?? HOME;
    return go(next.startsWith("/") && !next.startsWith("//") ? next : HOME, { replaced: true });
  }
  const root = h("div", { class: "view" });
  if (session.account) {
    frame ??= framed();
    if (frame.element.parentNode !== app) replace(app, frame.element);
    frame.mark(found?.page);
    replace(frame.main, root);
  } else {
    frame = null;
    replace(app, h("main", { class: found?.page.open ? "alone" : "entry", id: "main" }, root));
  }
  if (!found) {
    document.title = "Not found · Mneme";
    replace(
      root,
      h(
        "div",
        { class: "state" },
        h("h1", { tabindex: "-1" }, "There is nothing here"),
        h("p", null, h("a", { href: BASE }, "To the overview")),
      ),
    );
    return;
  }
  replace(root, loading());
  document.title = `${found.page.title} · Mneme`;
  try {
    const module = await found.page.load();
    if (signal.aborted) return;
    replace(root);
    await module.render(root, { api, session, signal, route: { path, params: found.params, query, go, note } });
    if (arrived && !signal.aborted && document.activeElement === document.body) root.querySelector("h1")?.focus({ preventScroll: true });
    arrived = true;
  } catch (error) {
    if (isAbort(error) || signal.aborted) return;
    if (!("status" in error)) console.error(error);
    replace(root, pageHead(found.page.title), failure(error, show));
  }
}

// --- the frame --------------------------------------------------------------------------------------------------------

function framed() {
  const main = h("main", { id: "main", tabindex: "-1" });
  const links = new Map(
    PAGES.filter((page) => page.group).map((page) => [page, h("a", { href: BASE + (page.path === HOME ? "" : page.path) }, page.title)]),
  );
  const nav = h(
    "nav",
    { id: "nav", "aria-label": "Views" },
    GROUPS.filter((group) => PAGES.some((page) => page.group === group.name)).map((group) =>
      h(
        "div",
        { class: "nav-group" },
        group.title && h("h2", null, group.title),
        h(
          "ul",
          null,
          [...links].filter(([page]) => page.group === group.name).map(([, made]) => h("li", null, made)),
        ),
      ),
    ),
  );
  const menu = h(
    "button",
    { type: "button", class: "button quiet menu", "aria-controls": "nav", "aria-expanded": "false", onclick: () => toggle() },
    "Menu",
  );
  const toggle = (open = !nav.classList.contains("open")) => (
    nav.classList.toggle("open", open),
    menu.setAttribute("aria-expanded", String(open))
  );
  const element = h(
    "div",
    { class: "frame" },
    h("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
    h(
      "header",
      { class: "top" },
      menu,
      h("a", { class: "brand", href: BASE }, h("img", { src: BASE + "/icon.svg", alt: "", width: 26, height: 26 }), "Mneme"),
      h(
        "div",
        { class: "who" },
        h("span", { class: "email", title: session.account.email }, session.account.email),
        themeButton(),
        button("Sign out", () => session.signOut(), { kind: "quiet" }),
      ),
    ),
    nav,
    main,
  );
  const mark = (current) => {
    toggle(false);
    const owner = current?.under ? PAGES.find((page) => page.path === current.under) : current;
    for (const [page, made] of links) page === owner ? made.setAttribute("aria-current", "page") : made.removeAttribute("aria-current");
  };
  return { element, main, mark };
}

function themeButton() {
  const dark = () =>
    (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const turn = () => {
    const theme = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("mneme.theme", theme);
    document.dispatchEvent(new Event("themechange"));
  };
  const half = svg(
    "svg",
    { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" },
    svg("circle", { cx: 8, cy: 8, r: 5.5 }),
    svg("path", { class: "solid", d: "M8 2.5a5.5 5.5 0 0 1 0 11z" }),
  );
  return button(half, turn, { kind: "quiet", "aria-label": "Light or dark", title: "Light or dark" });
}

// --- start ------------------------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const { origin, pathname, search } = new URL(anchor.href);
  if (origin === location.origin && pathname.startsWith(BASE + "/api/") && anchor.hasAttribute("download")) return download(event, anchor);
  const ours = origin === location.origin && (pathname === BASE || pathname.startsWith(BASE + "/")) && !pathname.startsWith(BASE + "/api/");
  if (!ours || anchor.hasAttribute("download") || anchor.target || anchor.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go((pathname.slice(BASE.length) || HOME) + search).then(() => scrollTo(0, 0));
});
// Going back leads to where one was again while a dialog stays open, which is told of it.
addEventListener("popstate", ({ state }) => {
  const open = [...document.querySelectorAll("dialog[data-stays]")].at(-1);
  const steps = position - (state?.at ?? position);
  if (returning) returning = false;
  else if (!open) {
    position -= steps;
    return show();
  } else if (steps) {
    returning = true;
    return history.go(steps);
  } else history.pushState({ at: position }, "", shown);
  open?.dispatchEvent(new Event("back"));
});
addEventListener("beforeunload", (event) => document.querySelector("dialog[data-stays]") && event.preventDefault());
session.addEventListener("ended", ({ detail }) => {
  if (detail.reason) toast(detail.reason);
  detail.reason ? show() : go(SIGN_IN);
});

session.renew = async (why) => (await import("./pages/sign-in-again.js")).signInAgain(session, why);
session.addEventListener("changed", ({ detail }) => changed(detail));

// A browser fetches a file without a word of this page: whether it is still the account of this page that is signed in is asked before.
async function download(event, { href, download: name }) {
  event.preventDefault();
  try {
    await api.get("/v1/auth/me");
    h("a", { href: new URL(href).pathname + new URL(href).search, download: name }).click();
  } catch (error) {
    if (!isAbort(error)) toast(told(error), { tone: "bad" });
  }
}

// Somebody else has signed in in another tab. Nothing of this page's account is lost before somebody has read that.
let telling = false;
async function changed(account) {
  if (telling) return;
  telling = true;
  const who = [h("strong", null, account.email), " has signed in in another tab. This page still shows what belongs to "];
  await dialog(
    "Somebody else is signed in now",
    (close) =>
      h(
        "div",
        { class: "stack" },
        h("p", null, who, h("strong", null, session.account.email), ", and nothing can be done for that account here until it is signed in again."),
        h(
          "div",
          { class: "row end" },
          button("Stay here", () => close()),
          button(`Go on as ${account.email}`, () => location.assign(BASE), { kind: "primary" }),
        ),
      ),
  );
  telling = false;
}

async function start() {
  history.replaceState({ at: position }, "");
  replace(app, loading());
  try {
    await session.load();
  } catch (error) {
    replace(app, failure(error, start));
    return;
  }
  await show();
}

start();
