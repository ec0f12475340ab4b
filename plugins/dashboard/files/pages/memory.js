// One memory: what it says, who said it and when, its timeline, what took its place, and what is like it.

import { count, datetime, decimal, duration, number } from "../format.js";
import { fieldText, indented } from "../json-text.js";
import {
  badge,
  button,
  card,
  confirm,
  empty,
  facts,
  h,
  identifier,
  link,
  load,
  meter,
  pageHead,
  replace,
  table,
  tabs,
  tags,
  time,
  toast,
} from "../kit.js";
import { editing } from "./memory-edit.js";
import { collectionChoices, memoryLine } from "./memory-parts.js";
import { timeline } from "./memory-timeline.js";

export const title = "Memory";

const CHAIN_MAX = 50;
const OLDER_LOOKED_AT = 10;
const QUERY_CHARS = 1_000;

export async function render(root, { api, route, signal }) {
  const path = `/v1/memories/${encodeURIComponent(route.params.id)}`;
  const show = async () => {
    const read = await api.get(path, null, { signal, whole: true });
    const memory = read.body;
    const collections = await collectionChoices(api, signal, memory.collection_id);
    const again = async () => show();
    const metadata = fieldText(read.text, "metadata") ?? "{}";
    replace(root, head(read, { api, route, path, again }), ...body(memory, metadata, collections, { api, signal }));
  };
  await show();
}

function head(read, { api, route, path, again }) {
  const memory = read.body;
  const edit = async () => {
    if (!(await editing(api, path, read))) return;
    toast("Saved. The version before is in its history.");
    await again();
  };
  const remove = async () => {
    if (!(await confirm("Delete this memory?", "It goes with its history and all that was derived from it, and cannot be brought back.")))
      return;
    await api.delete(path);
    toast("The memory is deleted.");
    await route.go("/memories");
  };
  const restore = async () => {
    await api.post(`${path}/restore`);
    toast("It counts again.");
    await again();
  };
  return h(
    "div",
    { class: "stack tight" },
    h("p", null, link("/memories", "← Memories")),
    pageHead(memory.title ?? "Memory", {
      actions: [memory.superseded_by_id && button("Restore", restore), button("Edit", edit), button("Delete", remove, { kind: "danger" })],
    }),
  );
}

function body(memory, metadata, collections, { api, signal }) {
  const collection = collections.find(([id]) => id === memory.collection_id);
  const described = Object.keys(memory.metadata ?? {}).length > 0;
  return [
    card(
      null,
      h("p", { class: "text content" }, memory.content),
      h(
        "p",
        { class: "row" },
        memory.searchable ? badge("searchable", "good") : badge(memory.processing_status, "warn"),
        memory.conflict_status !== "none" && badge(memory.conflict_status, "warn"),
        tags(memory.tags),
      ),
      facts([
        ["Id", identifier(memory.id)],
        ["Collection", link(`/memories?collection_id=${memory.collection_id}`, collection?.[1] ?? memory.collection_id)],
        ["Speaker", memory.speaker],
        ["Happened", time(memory.occurred_at, datetime(memory.occurred_at))],
        ["Stored", time(memory.created_at, datetime(memory.created_at))],
        ["Changed", memory.updated_at !== memory.created_at ? time(memory.updated_at, datetime(memory.updated_at)) : null],
        ["Expires", memory.expires_at && time(memory.expires_at, datetime(memory.expires_at))],
        ["Version", number(memory.version)],
        ["Importance", decimal(memory.importance)],
        ["Tier", memory.tier.replaceAll("_", " ")],
        ["Found", memory.access_count ? count(memory.access_count, "time") : "never"],
        ["User", memory.user_id],
        ["Session", memory.session_id && link(`/memories?session_id=${encodeURIComponent(memory.session_id)}`, memory.session_id)],
        ["Agent", memory.agent_id],
        ["Run", memory.run_id],
        ["Application", memory.app_id],
        ["Source", [memory.source, memory.source_reference].filter(Boolean).join(", ")],
      ]),
      described && h("div", { class: "stack tight" }, h("h2", { class: "small" }, "Metadata"), h("pre", { tabindex: "0" }, indented(metadata))),
    ),
    tabs([
      ["Timeline", () => timeline(memory, api, signal)],
      ["Supersession", () => supersession(memory, api, signal)],
      ["Similar", () => similar(memory, api, signal)],
    ]),
  ];
}

// Newer ones link by link. Of older ones, those merged into it are on record; others are looked for among the superseded ones nearest to it.
async function chain(memory, api, signal) {
  const newer = [];
  for (let next = memory.superseded_by_id; next && newer.length < CHAIN_MAX; next = newer.at(-1).superseded_by_id) {
    if (next === memory.id || newer.some(({ id }) => id === next)) break;
    newer.push(await api.get(`/v1/memories/${next}`, null, { signal }));
  }
  const query = memory.content.slice(0, QUERY_CHARS);
  const looked = { query, filters: { conflict_status: "superseded" }, include_superseded: true, include_low_confidence: true };
  const [merged, nearest] = await Promise.all([
    api.get(`/v1/memories/${memory.id}/merged`, { limit: 100 }, { signal }),
    api.post("/v1/search", { ...looked, limit: OLDER_LOOKED_AT }, { signal }),
  ]);
  const known = new Map(merged.items.map((one) => [one.id, one]));
  const further = nearest.results.filter(({ id }) => !known.has(id)).map(({ id }) => api.get(`/v1/memories/${id}`, null, { signal }));
  const candidates = [...known.values(), ...(await Promise.all(further))];
  const older = candidates.filter((one) => one.superseded_by_id === memory.id);
  return [
    ...older.map((one) => [one, "was superseded by this one"]),
    [memory, "this memory"],
    ...newer.map((one) => [one, "took its place"]),
  ];
}

function supersession(memory, api, signal) {
  const root = h("div");
  const step = ([one, said]) =>
    h(
      "li",
      { "aria-current": one === memory ? "true" : null },
      one === memory
        ? h("p", { class: "text" }, one.content)
        : h("a", { class: "row-link text", href: `/dashboard/memories/${one.id}` }, one.content),
      h("p", { class: "note" }, said, ", ", time(one.created_at, datetime(one.created_at))),
    );
  const nothing = empty(
    "Nothing superseded it, and it superseded nothing",
    "When a newer memory takes the place of an older one, the chain of them stands here.",
  );
  const note = h(
    "p",
    { class: "note" },
    `Older ones: those merged into this one, and what it superseded of the ${OLDER_LOOKED_AT} superseded memories nearest in meaning. Looking costs a credit.`,
  );
  load(
    root,
    () => chain(memory, api, signal),
    (found) => h("div", { class: "stack" }, found.length > 1 ? h("ol", { class: "chain" }, found.map(step)) : nothing, note),
    { signal },
  );
  return root;
}

function similar(memory, api, signal) {
  const root = h("div");
  const columns = [
    { label: "Memory", kind: "wide", cell: (hit) => memoryLine(hit) },
    {
      label: "Nearness",
      cell: (hit) => h("div", { class: "nearness" }, meter(hit.normalized_score, "Nearness"), decimal(hit.normalized_score)),
    },
  ];
  const show = (reply) =>
    reply.results.length
      ? [table(columns, reply.results), h("p", { class: "note" }, `Nearest in meaning, in ${duration(reply.processing_time_ms)}.`)]
      : empty("Nothing is like it");
  load(root, () => api.get(`/v1/search/similar/${memory.id}`, { limit: 10 }, { signal }), show, { signal });
  return root;
}
