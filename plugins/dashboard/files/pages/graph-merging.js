// Merging an entity into another one by hand: its names, attributes, relationships and mentions become the other's, and it goes.

import { count } from "../format.js";
import { button, confirm, dialog, h, replace, toast, told } from "../kit.js";
import { readable } from "./graph-drawing.js";

const GRAPH = "/v1/knowledge-graph";
const FOUND_MAX = 8;
const REST_MS = 200;

// -> promise of the id of the entity that stays, or undefined where nothing was merged.
export async function merge(entity, api, signal) {
  const into = await dialog(`Merge “${entity.name}” into…`, (close) => chooser(entity, api, signal, close));
  if (!into) return undefined;
  const text =
    `“${into.name}” gets its names, its attributes where it has none of its own, its relationships with their times and sources, and the ` +
    `memories that mention it. Then “${entity.name}” is gone. This cannot be undone.`;
  if (!(await confirm(`Merge “${entity.name}” into “${into.name}”?`, text, { label: "Merge" }))) return undefined;
  const moved = await merged(entity, into, api);
  toast(`“${entity.name}” is “${into.name}” from here on: ${count(moved, "relationship")} moved.`);
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
  const later = () => propose().catch((error) => replace(found, h("li", { class: "problem" }, told(error))));
  field.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(later, REST_MS))));
  return h("div", { class: "stack" }, h("p", null, "Two entries for the same thing become one. Which one stays?"), field, found);
}

// A large entity is moved a part at a time; what fails on the way has lost nothing, and can be asked for again.
async function merged(entity, into, api) {
  for (let moved = 0; ; ) {
    const done = await api.post(`${GRAPH}/entities/${encodeURIComponent(entity.id)}/merge`, { into: into.id });
    moved += done.relationships_moved;
    if (done.complete) return moved;
  }
}
