// The playground: one question put to search, reason and chat side by side, with what each took and what its answer rests on.

import { LONG_SECONDS_MAX } from "../api.js";
import { decimal, duration, number } from "../format.js";
import { badge, card, empty, facts, form, h, load, pageHead, replace } from "../kit.js";
import { result, verdict } from "./memories.js";
import { collectionChoices } from "./memory-parts.js";
import { estimatedTokens, highlighted } from "./scores.js";

export const title = "Playground";

const RESULTS = 5;
const QUESTION_CHARS = 8_192;
const DOUBTS = {
  no_match: "Nothing stored matches.",
  weak_evidence: "What was found is weak evidence.",
  subject_conflict: "What was found is about somebody else.",
  low_confidence: "The search is not sure enough.",
  no_answer_found: "What was found does not hold an answer.",
  unsupported: "The quotations do not bear the model's answer out.",
};

export async function render(root, { api, session, signal }) {
  const collections = await collectionChoices(api, signal);
  const columns = h("div", { class: "grid three" });
  const fields = [
    { name: "query", label: "Question", required: true, maxlength: QUESTION_CHARS, placeholder: "Where does Ada keep the spare key?" },
    { name: "user_id", label: "User", placeholder: "any" },
    { name: "collection_id", label: "Collection", type: "select", options: [["", "All collections"], ...collections] },
  ];
  const ask = async ({ query, ...narrowed }) => {
    const asked = { query: query.trim(), ...Object.fromEntries(Object.entries(narrowed).filter(([, value]) => value)) };
    const parts = [
      ["Search", () => searched(api, asked, signal), showSearch],
      ["Reason", () => reasoned(api, asked, signal), showReason],
      ["Chat", session.chat ? () => chatted(api, asked, signal) : null, showChat],
    ];
    await Promise.all(
      parts.map(([name, work, show], index) => {
        const place = h("div", { class: "stack" });
        const made = card(name, place);
        index < columns.children.length ? columns.children[index].replaceWith(made) : columns.append(made);
        return work ? load(place, work, show, { signal }) : replace(place, unconfigured());
      }),
    );
  };
  root.append(
    pageHead("Playground", {
      subtitle: "One question, three ways: what a search finds, what is reasoned from it, what a chat makes of it. Each costs what it costs over the API.",
    }),
    h("div", { class: "card" }, form(fields, { submit: "Ask", inline: true, onsubmit: ask })),
    columns,
  );
}

const unconfigured = () =>
  empty(
    "No language model is configured",
    "Chat needs one: whoever runs this service sets llm.base_url. Search and reason do without.",
  );

// -> {body, seconds}: a reply, and how long the service took for it.
async function timed(api, path, body, signal) {
  const { body: reply, headers } = await api.post(path, body, { signal, seconds: LONG_SECONDS_MAX, whole: true });
  return { reply, seconds: Number(headers.get("X-Process-Time")) };
}

const took = (seconds) => ["Took", duration(1_000 * seconds)];

// --- search -----------------------------------------------------------------------------------------------------------

const searched = (api, asked, signal) => timed(api, "/v1/search", { ...asked, limit: RESULTS, explain: true }, signal);

function showSearch({ reply, seconds }) {
  const tokens = reply.results.reduce((sum, { content }) => sum + estimatedTokens(content), 0);
  return [
    facts([took(seconds), ["Tokens of a model", "0"], ["Tokens of the results", `about ${number(tokens)}`]]),
    verdict(reply),
    reply.results.length
      ? h(
          "ol",
          { class: "list plain" },
          reply.results.map((hit) => h("li", null, result(hit, reply))),
        )
      : empty("Nothing stored stands as an answer"),
  ];
}

// --- reason -----------------------------------------------------------------------------------------------------------

const reasoned = (api, asked, signal) => timed(api, "/v1/search/reason", { ...asked, limit: RESULTS, include_steps: true }, signal);

function showReason({ reply, seconds }) {
  const contents = new Map(reply.sources.map(({ memory_id, content }) => [memory_id, content]));
  return [
    facts([took(seconds), ...tokenFacts(reply.usage), ["Engine", reply.model ?? "quotes, no model"]]),
    answer(reply.answer, DOUBTS[reply.abstain_reason] ?? "There is no answer."),
    reply.degraded && h("p", null, badge(`degraded: ${reply.degraded_reasons.join(", ")}`, "warn")),
    reply.citations.length > 0 && [
      h("h3", null, "It rests on"),
      reply.citations.map((citation) => quoted(citation.memory_id, highlighted(contents.get(citation.memory_id) ?? citation.quote, spans(citation, contents)))),
    ],
    h("h3", null, "How it came about"),
    h("ol", { class: "steps" }, reply.steps.map(step)),
  ];
}

const spans = ({ memory_id, start, end }, contents) => (contents.has(memory_id) ? [{ start, end }] : []);

const step = ({ kind, detail, results, confidence }) =>
  h(
    "li",
    null,
    h("strong", null, kind),
    ` ${detail}`,
    results != null && h("span", { class: "note" }, ` ${number(results)} found, confidence ${decimal(confidence)}`),
  );

// --- chat -------------------------------------------------------------------------------------------------------------

async function chatted(api, { query, user_id, collection_id }, signal) {
  const asked = { messages: [{ role: "user", content: query }], memory_limit: RESULTS, ...(user_id && { user: user_id }) };
  const { reply, seconds } = await timed(api, "/v1/chat/completions", { ...asked, ...(collection_id && { collection_id }) }, signal);
  const ids = reply.memory.injected_ids;
  const injected = ids.length ? await api.post("/v1/memories/query", { filters: { id: { in: ids } }, limit: ids.length }, { signal }) : { items: [] };
  return { reply, seconds, injected: injected.items };
}

function showChat({ reply, seconds, injected }) {
  const said = reply.choices[0]?.message?.content;
  return [
    facts([took(seconds), ...tokenFacts(reply.usage), ["Engine", reply.model]]),
    answer(typeof said === "string" ? said : null, "The model said nothing."),
    reply.memory.abstain_recommended && h("p", null, badge("memory holds no good evidence", "warn")),
    reply.memory.degraded && h("p", null, badge("a part of memory could not be asked", "warn")),
    h("h3", null, "What memory put in"),
    injected.length ? injected.map(({ id, content }) => quoted(id, content)) : h("p", { class: "note" }, "Nothing."),
  ];
}

// --- what they share --------------------------------------------------------------------------------------------------

// Names and figures of a model's usage; without any, that it was not asked.
const tokenFacts = (usage) => [
  ["Tokens of a model", number(usage?.total_tokens ?? 0)],
  ["Prompt and answer", usage?.total_tokens ? `${number(usage.prompt_tokens)} + ${number(usage.completion_tokens)}` : null],
];

const answer = (text, otherwise) => (text ? h("p", { class: "text content" }, text) : h("p", { class: "note" }, otherwise));

const quoted = (id, text) => h("blockquote", { class: "text" }, h("a", { class: "row-link", href: `/dashboard/memories/${id}` }, text));
