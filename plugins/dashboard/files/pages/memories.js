// Memories: all of them, newest first, or what a search finds, with the reasons for its order. What is asked is in the address.

import { decimal, duration, number } from "../format.js";
import { badge, button, dialog, empty, failure, form, h, link, load, meter, pageHead, pages, replace, toast } from "../kit.js";
import { collectionChoices, collectionHelp, memoryFields, memoryLine, newMemory } from "./memory-parts.js";
import { explanation, highlighted } from "./scores.js";

export const title = "Memories";

const TIERS = [
  ["", "Any"],
  ["short_term", "Short term"],
  ["long_term", "Long term"],
  ["archived", "Archived"],
];
const CHANNELS = [
  ["hybrid", "Words and meaning"],
  ["bm25", "Words only"],
  ["vector", "Meaning only"],
  ["graph", "Knowledge graph"],
];
const RESULTS = 10;

export async function render(root, { api, route, signal }) {
  const opened = Object.fromEntries(route.query);
  const collections = await collectionChoices(api, signal, opened.collection_id);
  const results = h("div");
  const search = searchForm(opened, collections, (asked) => {
    route.note(asked);
    return asked.q ? showFound(results, api, asked, signal) : showAll(results, api, asked, collections, signal);
  });
  const add = async () => {
    const store = (close) => async (values) => close(await api.call("POST", "/v1/memories", { text: newMemory(values) }));
    const made = await dialog(
      "New memory",
      (close) =>
        form(memoryFields({ collection_id: search.values().collection_id }, collections), { submit: "Store", cancel: () => close(), onsubmit: store(close) }),
      { wide: true },
    );
    if (!made) return;
    toast(made.searchable ? "Stored. The next search finds it." : "Stored. It is being indexed and will be found soon.");
    await route.go(`/memories/${made.id}`);
  };
  root.append(
    pageHead("Memories", {
      subtitle: "Browse what is stored, or search and see why each result stands where it does.",
      actions: [button("New memory", add, { kind: "primary" })],
    }),
    search,
    results,
  );
  const lost = search.lost();
  if (lost) replace(results, failure(new Error(`The address asks for “${lost}”, which is not understood. Search again without it.`)));
  else search.requestSubmit();
}

function searchForm(asked, collections, show) {
  const narrowing = [
    {
      name: "collection_id",
      label: "Collection",
      type: "select",
      options: [["", "All collections"], ...collections],
      help: collectionHelp(collections),
    },
    { name: "user_id", label: "User", placeholder: "any" },
    { name: "session_id", label: "Session", placeholder: "any" },
    { name: "tag", label: "Tag", placeholder: "any" },
    { name: "tier", label: "Tier", type: "select", options: TIERS },
    { name: "created_after", label: "Stored after", type: "datetime-local" },
    { name: "created_before", label: "Stored before", type: "datetime-local" },
    { name: "include_superseded", label: "Superseded ones too", type: "check" },
  ];
  const searching = [
    { name: "search_type", label: "Search by", type: "select", options: CHANNELS },
    { name: "limit", label: "Results", type: "number", min: 1, max: 100, placeholder: String(RESULTS) },
    { name: "threshold", label: "Lowest score, 0 to 1", type: "number", min: 0, max: 1, step: 0.01, placeholder: "0" },
    { name: "diversity", label: "Diversity, 0 to 1", type: "number", min: 0, max: 1, step: 0.1, placeholder: "0" },
    { name: "as_of", label: "As known on", type: "datetime-local" },
    { name: "include_low_confidence", label: "Weak results too", type: "check" },
    { name: "fast", label: "Fast, less exact", type: "check" },
    {
      name: "filters",
      label: "Conditions, as JSON",
      type: "textarea",
      rows: 2,
      spellcheck: "false",
      placeholder: '{"metadata.trip.year": {"gte": 2026}, "NOT": {"tags": "cancelled"}}',
    },
  ];
  const query = {
    name: "q",
    label: "Search",
    type: "search",
    maxlength: 8192,
    placeholder: "Where does Ada keep the spare key?",
    autocomplete: "off",
  };
  const known = [query, ...narrowing, ...searching].map((field) => ({ ...field, value: asked[field.name] }));
  const isSet = [...narrowing, ...searching].some(({ name }) => asked[name]);
  const block = (heading, fields, row) => [
    h("h2", { class: "small" }, heading),
    h(
      "div",
      { class: "options" },
      fields.map(({ name }) => row(name)),
    ),
  ];
  const made = form(known, {
    submit: "Search",
    arrange: (row, send, problem) => [
      h("div", { class: "search-line" }, row("q"), send),
      h(
        "details",
        { open: isSet },
        h("summary", null, "Filters and options"),
        h("div", { class: "stack tight" }, block("Only memories that match", narrowing, row), block("How a search works", searching, row)),
      ),
      problem,
    ],
    onsubmit: async (values) => {
      if (values.filters) parsedFilters(values.filters);
      await show(
        Object.fromEntries(
          Object.entries(values).map(([name, value]) => [
            name,
            name === "search_type" && value === "hybrid" ? "" : value === false || value == null ? "" : String(value),
          ]),
        ),
      );
    },
  });
  made.classList.add("card", "search");
  made.setAttribute("role", "search");
  // The name of a filter that was asked for and that its field does not take, such as a time that is none.
  made.lost = () => known.map(({ name }) => name).find((name) => asked[name] && !made.values()[name]);
  return made;
}

const instant = (local) => (local ? new Date(local).toISOString() : undefined);

function parsedFilters(text) {
  try {
    return JSON.parse(text);
  } catch (wrong) {
    throw Object.assign(new Error(`This is not JSON: ${wrong.message}`), { param: "filters" });
  }
}

// --- all of them ------------------------------------------------------------------------------------------------------

function showAll(results, api, asked, collections, signal) {
  const { collection_id, user_id, session_id, tag, tier, include_superseded } = asked;
  const query = {
    collection_id,
    user_id,
    session_id,
    tag,
    tier,
    include_superseded,
    created_after: instant(asked.created_after),
    created_before: instant(asked.created_before),
    limit: 50,
  };
  const narrowed = Object.entries(query).some(([name, value]) => value && name !== "limit");
  replace(
    results,
    pages({
      signal,
      noun: ["memory", "memories"],
      fetch: (cursor) => api.get("/v1/memories", { ...query, cursor }, { signal }),
      row: (memory) => memoryLine(memory, collections),
      empty: narrowed
        ? empty("No memory matches", "Loosen the filters above.")
        : empty(
            "Nothing is stored yet",
            "Store a first memory with the button above, or from your application with an API key.",
            link("/keys", "Make an API key"),
          ),
    }),
  );
}

// --- what a search finds ----------------------------------------------------------------------------------------------

async function showFound(results, api, asked, signal) {
  await load(
    results,
    () => found(api, asked, signal),
    (reply) => [
      verdict(reply),
      reply.results.length
        ? h(
            "ol",
            { class: "list" },
            reply.results.map((hit) => h("li", null, result(hit, reply))),
          )
        : nothingFound(asked),
    ],
    { signal },
  );
}

function found(api, asked, signal) {
  const conditions = [
    asked.tag && { tags: asked.tag },
    asked.tier && { tier: asked.tier },
    asked.created_after && { created_at: { gt: instant(asked.created_after) } },
    asked.created_before && { created_at: { lt: instant(asked.created_before) } },
    asked.filters && parsedFilters(asked.filters),
  ].filter(Boolean);
  const body = {
    query: asked.q,
    explain: true,
    search_type: asked.search_type || "hybrid",
    limit: Number(asked.limit || RESULTS),
    ...(asked.collection_id && { collection_id: asked.collection_id }),
    ...(asked.user_id && { user_id: asked.user_id }),
    ...(asked.session_id && { session_id: asked.session_id }),
    ...(asked.threshold && { threshold: Number(asked.threshold) }),
    ...(asked.as_of && { as_of: instant(asked.as_of) }),
    ...(conditions.length && { filters: conditions.length > 1 ? { AND: conditions } : conditions[0] }),
    ...(asked.include_superseded && { include_superseded: true }),
    ...(asked.include_low_confidence && { include_low_confidence: true }),
    ...(asked.fast && { fast: true }),
    ...(Number(asked.diversity) && { diversity: Number(asked.diversity) }),
  };
  return api.post(body.diversity ? "/v1/search/advanced" : "/v1/search", body, { signal });
}

const GROUNDING = { grounded: ["grounded", "good"], weak: ["weak evidence", "warn"], no_grounded_match: ["no match", "bad"] };

// How sure a search is of what it found.
export function verdict(reply) {
  const [said, tone] = GROUNDING[reply.grounding.status] ?? [reply.grounding.status, "plain"];
  return h(
    "div",
    { class: "verdict", role: "status" },
    h(
      "span",
      null,
      h("strong", null, reply.results.length ? `${number(reply.results.length)} of ${number(reply.total)}` : "No result"),
      ` in ${duration(reply.processing_time_ms)}`,
    ),
    badge(said, tone),
    reply.abstain_recommended && badge("better not to answer from this", "warn"),
    reply.degraded && badge(`degraded: ${reply.degraded_reasons.join(", ")}`, "warn"),
    h("span", { class: "note" }, `confidence ${decimal(reply.query_confidence)}. ${reply.grounding.reason}`),
  );
}

function nothingFound(asked) {
  return empty(
    "Nothing stored stands as an answer",
    asked.include_low_confidence ? "Even weak results are none." : "Results are not padded. Tick “Weak results too” to see what came near.",
  );
}

// A result with its score and, where it was asked for, why it stands where it does.
export function result(hit, reply) {
  return h(
    "article",
    { class: "result" },
    h("span", { class: "rank", "aria-label": `Rank ${number(hit.rank)}` }, number(hit.rank)),
    h(
      "div",
      { class: "stack tight" },
      h("a", { class: "row-link text", href: `/dashboard/memories/${hit.id}` }, highlighted(hit.content, hit.highlights)),
      h(
        "div",
        { class: "result-score" },
        meter(hit.normalized_score, `Score ${decimal(hit.normalized_score)} of 1`),
        h("span", null, decimal(hit.normalized_score)),
        hit.low_confidence && badge("weak", "warn"),
      ),
      memoryLine.about(hit),
      hit.explanation && h("details", null, h("summary", null, "Why it stands here"), explanation(hit, reply.ranking_profile)),
    ),
  );
}
