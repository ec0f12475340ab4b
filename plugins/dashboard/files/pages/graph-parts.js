// What stands beside the drawing of the graph: an entity from near, the contradictions, and the same graph as a list.

import { count, date, number, percent } from "../format.js";
import { badge, button, card, empty, facts, h, identifier, link, load, pages, tabs, tags, time } from "../kit.js";
import { readable } from "./graph-drawing.js";
import { merge } from "./graph-merging.js";

const PAGE_ITEMS = 25;
const RELATED_MAX = 100;

// "12 Mar 2026 – 4 May 2026", "since …", "until …", "always".
export function interval(from, to) {
  if (!from && !to) return "always";
  if (!from) return `until ${date(to)}`;
  return to ? `${date(from)} – ${date(to)}` : `since ${date(from)}`;
}

// --- an entity --------------------------------------------------------------------------------------------------------

// Show an entity in root. on: {open, focus, select, merged} get an entity's id.
export function showEntity(root, id, { api, on, contested, signal }) {
  const path = encodeURIComponent(id);
  return load(
    root,
    () => api.get(`/v1/knowledge-graph/entities/${path}`, null, { signal }),
    ({ entity, relationships, source_memories: memories }) => {
      const attributes = Object.entries(entity.attributes);
      return [
        h(
          "div",
          { class: "stack tight" },
          h("h2", null, entity.name),
          h("div", { class: "row" }, badge(readable(entity.type), "accent"), identifier(entity.id)),
        ),
        h(
          "div",
          { class: "row" },
          button("Expand", () => on.open(entity.id), { kind: "small", title: "Draw everything that is related to it" }),
          button("Only around it", () => on.focus(entity.id), { kind: "small" }),
          button("Merge…", async () => on.merged(await merge(entity, api, signal)), {
            kind: "small",
            title: "Let another entity stand for it, where both are the same",
          }),
        ),
        facts([
          ["Also called", entity.aliases.length ? tags(entity.aliases) : null],
          ["Mentioned in", count(entity.mention_count, "memory", "memories")],
          ["First seen", time(entity.first_seen_at)],
          ["Last seen", time(entity.last_seen_at)],
          ...attributes.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
        ]),
        tabs([
          [
            `Related ${number(relationships.length)}`,
            () =>
              relationships.length
                ? h(
                    "ul",
                    { class: "list" },
                    relationships.slice(0, RELATED_MAX).map((one) => h("li", null, relationshipLine(one, entity.id, on, contested))),
                    relationships.length > RELATED_MAX && h("li", { class: "note" }, `The newest ${RELATED_MAX}. The timeline has all.`),
                  )
                : empty("Nothing is related to it"),
          ],
          ["Timeline", () => timeline(path, entity.id, { api, on, contested, signal })],
          [
            `Sources ${number(memories.length)}`,
            () =>
              memories.length
                ? h("ul", { class: "list" }, memories.map(source))
                : empty("No memory mentions it", "It was made through the API."),
          ],
        ]),
      ];
    },
    { signal },
  );
}

function relationshipLine({ id, source, target, type, confidence, valid_from, valid_to, source_memory_id }, self, on, contested) {
  const outward = source.id === self;
  const other = outward ? target : source;
  const name = h("button", { type: "button", class: "as-link", onclick: () => on.select(other.id) }, other.name);
  return h(
    "div",
    { class: "stack tight" },
    h(
      "div",
      null,
      outward ? [readable(type), " → ", name] : [name, ` → ${readable(type)} → this`],
      contested.has(id) && [" ", badge("contradicted", "bad")],
    ),
    h(
      "div",
      { class: "note" },
      interval(valid_from, valid_to),
      confidence < 1 && `, ${percent(confidence)} sure`,
      source_memory_id && [", ", link(`/memories/${source_memory_id}`, "source")],
    ),
  );
}

const timeline = (path, self, { api, on, contested, signal }) =>
  pages({
    signal,
    noun: ["relationship", "relationships"],
    fetch: (cursor) => api.get(`/v1/knowledge-graph/timeline/${path}`, { cursor, limit: PAGE_ITEMS }, { signal }),
    row: (one) => relationshipLine(one, self, on, contested),
    empty: empty("Nothing is related to it"),
  });

const source = ({ memory_id, content, occurred_at }) =>
  h(
    "li",
    null,
    h("p", { class: "text clamped" }, content),
    h("p", { class: "note" }, link(`/memories/${memory_id}`, "Open the memory"), ", ", time(occurred_at)),
  );

// --- contradictions ---------------------------------------------------------------------------------------------------

export const contradictions = ({ api, onshow, signal }) =>
  pages({
    signal,
    noun: ["contradiction", "contradictions"],
    fetch: (cursor) => api.get("/v1/knowledge-graph/contradictions", { cursor, limit: PAGE_ITEMS }, { signal }),
    row: ({ subject, predicate, claims, overlap, resolution }) =>
      h(
        "div",
        { class: "stack" },
        h(
          "div",
          { class: "row between" },
          h("h3", null, subject, " · ", readable(predicate)),
          button("Show in the graph", () => onshow(subject), { kind: "small" }),
        ),
        h(
          "div",
          { class: "claims" },
          claims.map((claim) => side(claim, resolution)),
        ),
        h(
          "p",
          { class: "note" },
          `Both would hold ${interval(overlap.from, overlap.to)}. `,
          resolution ? resolution.reason : "Nothing tells which one to go by.",
        ),
      ),
  });

const side = ({ relationship_id, value, valid_from, valid_to, memory_id, quote }, resolution) =>
  h(
    "div",
    { class: "claim" },
    h("div", { class: "row between" }, h("strong", null, value), resolution?.kept === relationship_id && badge("to go by", "good")),
    h("p", { class: "note" }, interval(valid_from, valid_to)),
    quote
      ? h("blockquote", { class: "text clamped" }, quote)
      : h("p", { class: "note" }, "It was claimed through the API; no memory says so."),
    memory_id && h("p", { class: "note" }, link(`/memories/${memory_id}`, "Open the memory")),
  );

// --- the list ---------------------------------------------------------------------------------------------------------

// Every entity, by type and beginning of the name: what the drawing shows, for keyboards and screen readers.
export function entityList({ api, types, onselect, signal }) {
  const asked = { entity_type: "", name_prefix: "" };
  const list = pages({
    signal,
    noun: ["entity", "entities"],
    fetch: (cursor) => api.get("/v1/knowledge-graph/entities", { ...asked, cursor, limit: 50 }, { signal }),
    empty: empty("No entity is like that"),
    columns: [
      {
        label: "Name",
        kind: "wide",
        cell: ({ id, name }) => h("button", { type: "button", class: "as-link", onclick: () => onselect(id) }, name),
      },
      { label: "Type", cell: ({ type }) => badge(readable(type)) },
      { label: "Mentions", kind: "number", cell: ({ mention_count }) => number(mention_count) },
      { label: "Last seen", cell: ({ last_seen_at }) => time(last_seen_at) },
    ],
  });
  let timer = 0;
  const ask = (changes, ms) => (Object.assign(asked, changes), clearTimeout(timer), (timer = setTimeout(list.reload, ms)));
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "filters" },
      h("input", {
        type: "search",
        placeholder: "Name begins with…",
        "aria-label": "Name begins with",
        oninput: (event) => ask({ name_prefix: event.target.value }, 250),
      }),
      h(
        "select",
        { "aria-label": "Type", onchange: (event) => ask({ entity_type: event.target.value }, 0) },
        h("option", { value: "" }, "Every type"),
        types.map((type) => h("option", { value: type }, readable(type))),
      ),
    ),
    list,
  );
}

export const hint = () =>
  card(
    null,
    h(
      "div",
      { class: "state" },
      h("strong", null, "Nothing is chosen"),
      h("p", null, "Choose an entity in the drawing, or look for one by name. Its relationships and sources appear here."),
    ),
  );
