// The knowledge graph: drawn and walked through, as it was at any time, and as it was known at any time.

import { count, datetime, number } from "../format.js";
import { button, card, empty, h, isAbort, link, load, pageHead, replace, tabs, toast, told as wording } from "../kit.js";
import { clock } from "./graph-clock.js";
import { Drawing, readable } from "./graph-drawing.js";
import { contradictions, entityList, hint, showEntity } from "./graph-parts.js";

export const title = "Knowledge graph";

const QUERY = "/v1/knowledge-graph/query";
const RELATIONSHIPS_MAX = 500; // of one question; the API gives no more
const ALONE_MAX = 100; // entities without relationships that are drawn
const OPENED_MAX = 12; // entities that stay expanded; the first ones close again
const AROUND_MAX = 200;
const FOUND_MAX = 8;
const CONTESTED_MAX = 100;
const REST_MS = 200;
const TONES = 5; // types with a colour of their own; all others share the sixth
const EVER = ["0100-01-01T00:00:00Z", "9000-01-01T00:00:00Z"];

export async function render(root, { api, route, signal }) {
  const place = h("div", { class: "stack" });
  root.append(
    pageHead("Knowledge graph", {
      subtitle: "Who and what your memories speak of, and how they are related: at any time, and as it was known at any time.",
    }),
    place,
  );
  await load(
    place,
    async () => {
      const stats = await api.get("/v1/knowledge-graph/stats", null, { signal });
      const [sample, newest, contested] = await Promise.all([
        api.post(QUERY, { between: EVER, limit: RELATIONSHIPS_MAX }, { signal }),
        api.get("/v1/knowledge-graph/entities", { limit: ALONE_MAX }, { signal }),
        stats.contradictions ? contestedClaims(api, signal) : new Set(),
      ]);
      return { stats, sample, newest, contested };
    },
    (found) =>
      found.stats.entities
        ? explorer(found, { api, route, signal })
        : empty(
            "The graph is empty",
            "It grows as memories are processed: what they say of people, places and things becomes entities and relationships. The API can add to it as well.",
          ),
    { signal },
  );
}

// Ids of relationships that contradict each other; null where the account's tier does not tell.
async function contestedClaims(api, signal) {
  try {
    const { items } = await api.get("/v1/knowledge-graph/contradictions", { limit: CONTESTED_MAX }, { signal });
    return new Set(items.flatMap(({ claims }) => claims.map((claim) => claim.relationship_id)));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

function explorer({ stats, sample, newest, contested }, { api, route, signal }) {
  const types = Object.entries(stats.entities_by_type)
    .sort(([, a], [, b]) => b - a)
    .map(([type]) => type);
  const tone = new Map(types.map((type, index) => [type, Math.min(index, TONES) + 1]));
  const asked = { focus: null, depth: 1, opened: [], hidden: new Set(), relation: "" };
  const told = h("p", { class: "note", role: "status" });
  const chosen = h("p", { class: "chosen", hidden: true });
  const around = h("div", { class: "row around", hidden: true });
  const panel = h("aside", { class: "stack entity-panel", "aria-label": "The chosen entity" }, hint());
  let shown = { entities: [], relationships: [] };
  let asking = new AbortController();

  const drawing = new Drawing({ signal, onselect: (id) => select(id), onopen: (id) => (open(id), drawing.centre(id)) });
  const valid = clock({ label: "What held at", help: "The world's clock: what was true then.", onchange: () => ask() });
  const known = clock({
    label: "As it was known at",
    help: "Our clock: what had been learned by then, mistakes included.",
    onchange: () => ask(),
  });
  valid.span(instants(sample.relationships, "valid_from", "valid_to"));
  known.span(instants(sample.relationships, "recorded_at", "invalidated_at"));

  async function ask() {
    asking.abort();
    const mine = (asking = new AbortController());
    drawing.element.setAttribute("aria-busy", "true");
    try {
      const clocks = { valid_at: iso(valid.chosen), known_at: iso(known.chosen) };
      shown = await neighbourhood(api, asked, clocks, newest, AbortSignal.any([signal, mine.signal]));
      paint();
    } catch (error) {
      if (!isAbort(error)) replace(told, h("span", { class: "problem" }, wording(error)), " The drawing is as it was before.");
    } finally {
      if (mine === asking) drawing.element.removeAttribute("aria-busy");
    }
  }

  function paint() {
    const entities = shown.entities.filter(({ type }) => !asked.hidden.has(type));
    const here = new Set(entities.map(({ id }) => id));
    const relationships = shown.relationships.filter(({ source, target }) => here.has(source.id) && here.has(target.id));
    const degree = new Map();
    for (const { source, target } of relationships) for (const { id } of [source, target]) degree.set(id, (degree.get(id) ?? 0) + 1);
    drawing.show(
      entities.map(({ id, name, type }) => ({ id, name, tone: tone.get(type) ?? TONES + 1, degree: degree.get(id) ?? 0 })),
      relationships.map(({ id, source, target, type }) => ({
        id,
        source: source.id,
        target: target.id,
        type,
        contested: contested?.has(id),
      })),
    );
    replace(told, said(entities.length, relationships.length));
  }

  function said(entities, relationships) {
    const moments = [valid.chosen && `held on ${datetime(valid.chosen)}`, known.chosen && `was known on ${datetime(known.chosen)}`].filter(
      Boolean,
    );
    const drawn = `Drawn: ${count(entities, "entity", "entities")} and ${count(relationships, "relationship")}${moments.length ? `, as it ${moments.join(" and ")}` : ""}.`;
    if (!shown.sampled) return drawn;
    return `${drawn} A sample, the newest of ${count(stats.entities, "entity", "entities")} and ${count(stats.relationships, "relationship")} in all: look for a name, or expand an entity, to see more.`;
  }

  function select(id) {
    drawing.select(id);
    route.note({ entity: id });
    const name = shown.entities.find((entity) => entity.id === id)?.name;
    chosen.hidden = !name;
    replace(
      chosen,
      "Chosen: ",
      h("strong", null, name),
      " ",
      button("Details", () => panel.scrollIntoView(), { kind: "small" }),
    );
    if (!id) return replace(panel, hint());
    const inside = card(null);
    replace(panel, inside);
    showEntity(inside, id, {
      api,
      contested: contested ?? new Set(),
      signal,
      on: { open, focus, merged, select: (other) => (select(other), drawn(other) ? drawing.centre(other) : open(other)) },
    });
  }

  // In a small window the panel is below everything else.
  const toPanel = () => getComputedStyle(panel).position === "static" && panel.scrollIntoView();
  const drawn = (id) => shown.entities.some((entity) => entity.id === id);

  async function open(id) {
    asked.opened = [...asked.opened.filter((other) => other !== id), id].slice(-OPENED_MAX);
    await ask();
    drawing.select(id);
  }

  async function focus(id) {
    Object.assign(asked, { focus: id, opened: [] });
    await ask();
    const name = shown.entities.find((entity) => entity.id === id)?.name ?? "it";
    const hops = h(
      "select",
      { "aria-label": "How far", onchange: (event) => ((asked.depth = Number(event.target.value)), ask()) },
      [1, 2, 3].map((depth) => h("option", { value: depth, selected: depth === asked.depth }, count(depth, "hop"))),
    );
    replace(
      around,
      h("span", null, "Only around ", h("strong", null, name), ", up to"),
      hops,
      button("Show everything", everything, { kind: "small" }),
    );
    around.hidden = false;
    drawing.fit();
  }

  async function merged(id) {
    if (!id) return;
    newest = await api.get("/v1/knowledge-graph/entities", { limit: ALONE_MAX }, { signal });
    Object.assign(asked, { focus: null, opened: [] });
    around.hidden = true;
    select(id);
    await open(id);
    drawing.centre(id);
  }

  async function everything() {
    Object.assign(asked, { focus: null, opened: [] });
    around.hidden = true;
    await ask();
    drawing.fit();
  }

  async function showNamed(name) {
    const { entity } = await api.get(`/v1/knowledge-graph/entities/${encodeURIComponent(name)}`, null, { signal });
    views.choose(0);
    select(entity.id);
    await open(entity.id);
    drawing.centre(entity.id);
  }

  const finder = search({ api, signal, onchoose: async (id) => (select(id), drawn(id) || (await open(id)), drawing.centre(id)) });
  const relations = h(
    "select",
    { class: "picker", "aria-label": "Relationships that are drawn", onchange: () => ((asked.relation = relations.value), ask()) },
    h("option", { value: "" }, "Every relationship"),
    Object.entries(stats.relationships_by_type)
      .sort(([, a], [, b]) => b - a)
      .map(([type, many]) => h("option", { value: type }, `${readable(type)} (${number(many)})`)),
  );
  const drawnView = () =>
    h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "drawing-frame" },
        h("div", { class: "row between" }, finder, relations, legend(types, tone, asked.hidden, paint)),
        around,
        drawing.element,
        chosen,
        told,
      ),
      h("div", { class: "clocks" }, valid, known),
    );
  const views = tabs([
    ["Drawing", drawnView],
    ["List", () => entityList({ api, types, onselect: (id) => (select(id), toPanel()), signal })],
    [
      `Contradictions (${number(stats.contradictions)})`,
      () => (!stats.contradictions ? agreement() : contested ? contradictions({ api, onshow: showNamed, signal }) : untold()),
    ],
  ]);
  views.choose = (index) => views.querySelectorAll("[role=tab]")[index].click();
  ask().then(
    () => route.query.get("entity") && showNamed(route.query.get("entity")).catch((error) => toast(wording(error), { tone: "bad" })),
  );
  return h("div", { class: "explorer" }, views, panel);
}

// What is drawn: the newest relationships, or those around the entity in focus, and those around each entity that was expanded.
// newest: a page of entities; those without relationships stand alone.
async function neighbourhood(api, { focus, depth, opened, relation }, clocks, newest, signal) {
  const narrowed = { ...clocks, ...(relation && { relation_type: relation }) };
  const query = (body) => api.post(QUERY, { ...narrowed, ...body }, { signal });
  const first = focus ? query({ entity: focus, depth, limit: RELATIONSHIPS_MAX }) : query({ limit: RELATIONSHIPS_MAX });
  const answers = await Promise.all([first, ...opened.map((entity) => query({ entity, limit: AROUND_MAX }))]);
  const entities = new Map(answers.flatMap((answer) => answer.entities.map((entity) => [entity.id, entity])));
  const relationships = new Map(answers.flatMap((answer) => answer.relationships.map((one) => [one.id, one])));
  const full = answers[0].relationships.length === RELATIONSHIPS_MAX;
  const whole = !focus && !full && !relation;
  if (whole) for (const entity of newest.items) entities.set(entity.id, entities.get(entity.id) ?? entity);
  const sampled = full || (whole && entities.size < newest.total_count);
  return { entities: [...entities.values()], relationships: [...relationships.values()], sampled };
}

// A field that proposes the entities whose names begin with what was typed.
function search({ api, onchoose, signal }) {
  const found = h("ul", { class: "found", hidden: true });
  const field = h("input", { type: "search", placeholder: "Find by name…", "aria-label": "Find an entity by name", autocomplete: "off" });
  let timer = 0;
  const close = () => (found.hidden = true);
  const propose = async () => {
    const prefix = field.value.trim();
    if (!prefix) return close();
    try {
      const { items } = await api.get("/v1/knowledge-graph/entities", { name_prefix: prefix, limit: FOUND_MAX }, { signal });
      const choose = (id) => (close(), onchoose(id));
      replace(
        found,
        items.map(({ id, name, type }) =>
          h("li", null, h("button", { type: "button", onclick: () => choose(id) }, name, h("span", { class: "note" }, readable(type)))),
        ),
        !items.length && h("li", { class: "note" }, "No name begins like that."),
      );
      found.hidden = false;
    } catch (error) {
      if (!isAbort(error)) toast(wording(error), { tone: "bad" });
    }
  };
  field.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(propose, REST_MS))));
  const frame = h(
    "div",
    {
      class: "finder",
      onkeydown: (event) => {
        const buttons = [...found.querySelectorAll("button")];
        const at = buttons.indexOf(document.activeElement);
        if (event.key === "Escape") (close(), field.focus());
        else if (event.key === "Enter" && event.target === field) buttons[0]?.click();
        else if (event.key === "ArrowDown") (event.preventDefault(), buttons[Math.min(at + 1, buttons.length - 1)]?.focus());
        else if (event.key === "ArrowUp") (event.preventDefault(), (buttons[at - 1] ?? field).focus());
      },
      onfocusout: (event) => frame.contains(event.relatedTarget) || close(),
    },
    field,
    found,
  );
  return frame;
}

// The types with their colours; pressing one hides it or brings it back.
function legend(types, tone, hidden, onchange) {
  const toggle = (type) => (event) => {
    hidden.has(type) ? hidden.delete(type) : hidden.add(type);
    event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(type)));
    onchange();
  };
  return h(
    "div",
    { class: "legend", role: "group", "aria-label": "Types that are drawn" },
    types
      .slice(0, 2 * TONES)
      .map((type) =>
        h(
          "button",
          { type: "button", "aria-pressed": "true", onclick: toggle(type) },
          h("span", { class: `dot tone-${tone.get(type)}` }),
          readable(type),
        ),
      ),
  );
}

const agreement = () =>
  empty("No contradictions", "Claims that cannot hold at the same time would be listed here, with what speaks for each.");

const untold = () =>
  empty("Your tier counts contradictions", "A higher one lists them, with what speaks for each side.", link("/billing", "See the tiers"));

const instants = (relationships, ...names) =>
  relationships
    .flatMap((one) => names.map((name) => one[name]))
    .filter(Boolean)
    .map((text) => Date.parse(text));
const iso = (ms) => (ms == null ? undefined : new Date(ms).toISOString());
