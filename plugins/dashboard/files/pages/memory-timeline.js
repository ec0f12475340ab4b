// A memory in time: what it rests on, its versions and what each changed, what took its place, and what rests on it.

import { count, datetime, number } from "../format.js";
import { badge, h, link, load, time } from "../kit.js";

const VERSIONS_MAX = 200;
const PAGE_ITEMS = 100;
const RESTING_MAX = 100;
const INFERRED = "inferred"; // the source_type of a fact, whose source_reference is the memory that says it
const CHANGES = { ADD: ["stored", "good"], UPDATE: ["changed", "accent"], SUPERSEDE: ["superseded", "warn"], DELETE: ["ended", "bad"] };

export function timeline(memory, api, signal) {
  const root = h("div");
  load(root, () => gathered(memory, api, signal), show, { signal });
  return root;
}

async function gathered(memory, api, signal) {
  const resting = { source_type: INFERRED, source_reference: memory.id };
  const [[versions, isWhole], source, successor, facts, merged] = await Promise.all([
    history(memory, api, signal),
    memory.source_type === INFERRED && memory.source_reference ? found(memory.source_reference, api, signal) : null,
    memory.superseded_by_id ? found(memory.superseded_by_id, api, signal) : null,
    api.post("/v1/memories/query", { filters: resting, include_superseded: true, limit: RESTING_MAX }, { signal }),
    api.get(`/v1/memories/${memory.id}/merged`, { limit: PAGE_ITEMS }, { signal }),
  ]);
  return { memory, versions, isWhole, source, successor, facts, merged };
}

// Oldest first -> [versions, whether these are all].
async function history(memory, api, signal) {
  const versions = [];
  for (let cursor; ; ) {
    const page = await api.get(`/v1/memories/${memory.id}/history`, { cursor, limit: PAGE_ITEMS }, { signal });
    versions.push(...page.items);
    cursor = page.next_cursor;
    if (!cursor || versions.length >= VERSIONS_MAX) return [versions, !cursor];
  }
}

// The memory, or null where it was deleted meanwhile.
async function found(id, api, signal) {
  const page = await api.post("/v1/memories/query", { filters: { id }, include_superseded: true, limit: 1 }, { signal });
  return page.items[0] ?? null;
}

function show({ memory, versions, isWhole, source, successor, facts, merged }) {
  const events = [
    source && event(source.created_at, "was said", "accent", evidence(source, memory)),
    memory.occurred_at !== memory.created_at && event(memory.occurred_at, "happened", "plain", h("span", null, "What it tells of.")),
    ...versions.map((version, index) => versionEvent(version, versions[index - 1], successor)),
    ...facts.items.map((fact) => event(fact.created_at, "a fact was read out of it", "accent", quoted(fact))),
    ...merged.items.map((one) => event(one.updated_at, "stands for a near duplicate as well", "plain", quoted(one))),
    memory.expires_at && event(memory.expires_at, "expires", "warn"),
  ].filter(Boolean);
  events.sort((a, b) => a.at - b.at);
  return h(
    "div",
    { class: "stack" },
    h("ol", { class: "chain", "aria-label": "Timeline" }, events.map(({ element }) => element)),
    h("p", { class: "note" }, said(versions, isWhole, memory, source, facts)),
  );
}

function said(versions, isWhole, memory, source, facts) {
  const rests = facts.total_count
    ? `${count(facts.total_count, "other memory rests", "other memories rest")} on this one: deleting it deletes them.`
    : "No other memory rests on this one.";
  const lost = memory.source_type === INFERRED && !source ? " The memory that said it is gone." : "";
  return `${isWhole ? count(versions.length, "version") : `The first ${number(versions.length)} versions`}. ${rests}${lost}`;
}

function event(iso, what, tone, ...details) {
  const element = h(
    "li",
    { class: "stack tight" },
    h("p", { class: "about note" }, badge(what, tone), time(iso, datetime(iso))),
    details,
  );
  return { at: Date.parse(iso), element };
}

function versionEvent(version, before, successor) {
  const [what, tone] = CHANGES[version.event];
  const isReplaced = version.event === "SUPERSEDE" || version.event === "DELETE";
  return event(
    version.at,
    what,
    tone,
    h("p", { class: "about note" }, h("strong", null, `Version ${number(version.version)}`), actor(version), version.reason),
    h("p", { class: "text" }, before ? changed(before.content, version.content) : version.content),
    isReplaced && successor && [h("p", { class: "note" }, "What took its place:"), quoted(successor)],
  );
}

function actor({ actor: who }) {
  if (!who) return null;
  const named = who.startsWith("key_") ? link("/keys", "an API key") : who.startsWith("usr_") ? "a signed-in person" : who;
  return h("span", null, "by ", named);
}

const quoted = (memory) =>
  h(
    "blockquote",
    { class: "text" },
    h("a", { class: "row-link", href: `/dashboard/memories/${memory.id}` }, memory.content),
    memory.superseded_by_id && [" ", badge("superseded", "warn")],
  );

// What was said, with the words of it that the memory repeats marked.
function evidence(source, { content }) {
  const words = content.replace(/[.!?]+$/, "");
  const at = source.content.indexOf(words);
  const parts =
    at < 0 || !words
      ? [source.content]
      : [source.content.slice(0, at), h("mark", null, words), source.content.slice(at + words.length)];
  return h(
    "div",
    { class: "stack tight" },
    h("blockquote", { class: "text" }, h("a", { class: "row-link", href: `/dashboard/memories/${source.id}` }, parts)),
    h("p", { class: "note" }, source.speaker && `${source.speaker}. `, "This memory rests on it and goes with it."),
  );
}

// The later text, with the words between what both begin and end with: gone ones struck out, new ones marked.
function changed(before, after) {
  if (before === after) return after;
  const [old, now] = [before, after].map((text) => text.split(/(\s+)/));
  let [start, end] = [0, 0];
  const least = Math.min(old.length, now.length);
  while (start < least && old[start] === now[start]) start++;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const gone = old.slice(start, old.length - end).join("");
  const added = now.slice(start, now.length - end).join("");
  return [
    now.slice(0, start).join(""),
    gone && h("del", null, gone),
    gone && added && " ",
    added && h("ins", null, added),
    now.slice(now.length - end).join(""),
  ];
}
