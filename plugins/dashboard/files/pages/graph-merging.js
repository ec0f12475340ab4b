// Merging an entity into another one by hand: its names, attributes and standing relationships become the other's, and it goes.

import { count } from "../format.js";
import { button, confirm, dialog, h, replace, toast } from "../kit.js";
import { readable } from "./graph-drawing.js";

const GRAPH = "/v1/knowledge-graph";
const FOUND_MAX = 8;
const PAGE_ITEMS = 100;
const REST_MS = 200;

// -> promise of the id of the entity that stays, or undefined where nothing was merged.
export async function merge(entity, api, signal) {
  const into = await dialog(`Merge “${entity.name}” into…`, (close) => chooser(entity, api, signal, close));
  if (!into) return undefined;
  const relationships = await standing(entity, api, signal);
  const moving = relationships.filter(({ source, target }) => source.id !== into.id && target.id !== into.id);
  const text =
    `“${into.name}” gets its names, its attributes where it has none of its own, and ${count(moving.length, "relationship")}, each with its times ` +
    `and its source. Then “${entity.name}” is deleted; the memories that mention it stay. ` +
    `It costs ${count(moving.length + 1, "credit")} and cannot be undone.`;
  if (!(await confirm(`Merge “${entity.name}” into “${into.name}”?`, text, { label: "Merge" }))) return undefined;
  await merged(entity, into, moving, api);
  toast(`“${entity.name}” is “${into.name}” from here on.`);
  return into.id;
}

// A field that proposes other entities by the beginning of their names.
function chooser(entity, api, signal, close) {
  const found = h("ul", { class: "list plain" });
  const field = h("input", { type: "search", "aria-label": "The entity that stays", placeholder: "Its name begins with…", autocomplete: "off" });
  let timer = 0;
  const propose = async () => {
    const prefix = field.value.trim();
    if (!prefix) return replace(found);
    const { items } = await api.get(`${GRAPH}/entities`, { name_prefix: prefix, limit: FOUND_MAX }, { signal });
    const others = items.filter(({ id }) => id !== entity.id);
    replace(
      found,
      others.map((other) =>
        h("li", { class: "row between" }, button(other.name, () => close(other)), h("span", { class: "note" }, readable(other.type))),
      ),
      !others.length && h("li", { class: "note" }, "No other name begins like that."),
    );
  };
  const later = () => propose().catch((error) => replace(found, h("li", { class: "problem" }, error.message)));
  field.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(later, REST_MS))));
  return h("div", { class: "stack" }, h("p", null, "Two entries for the same thing become one. Which one stays?"), field, found);
}

// Its relationships that stand, in the order of time.
async function standing(entity, api, signal) {
  const found = [];
  let cursor;
  do {
    const page = await api.get(`${GRAPH}/timeline/${encodeURIComponent(entity.id)}`, { cursor, limit: PAGE_ITEMS }, { signal });
    found.push(...page.items.filter(({ invalidated_at }) => !invalidated_at));
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

// Each step can be repeated, and the entity goes last: what fails on the way has lost nothing.
async function merged(entity, into, relationships, api) {
  const aliases = [...new Set([entity.name, ...entity.aliases])].filter((name) => name !== into.name);
  const attributes = { ...entity.attributes, ...into.attributes };
  await api.post(`${GRAPH}/entities`, { name: into.name, type: into.type, aliases, attributes });
  const end = ({ id }) => (id === entity.id ? into.id : id);
  for (const one of relationships) {
    const { type, attributes, confidence, valid_from, valid_to, recorded_at, source_memory_id, functional } = one;
    const times = { recorded_at, ...(valid_from && { valid_from }), ...(valid_to && { valid_to }) };
    const source = source_memory_id ? { source_memory_id } : {};
    const said = { type, attributes, confidence, functional, ...times, ...source };
    await api.post(`${GRAPH}/relationships`, { source: end(one.source), target: end(one.target), ...said });
  }
  await api.delete(`${GRAPH}/entities/${encodeURIComponent(entity.id)}`);
}
