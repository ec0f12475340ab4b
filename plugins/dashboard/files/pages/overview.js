// Overview: how much is stored, what the month has cost, how busy it is, and what waits.

import { timeChart } from "../charts.js";
import { ago, bytes, compact, count, datetime, duration, number, percent } from "../format.js";
import { badge, card, empty, h, isAbort, link, load, meter, pageHead, replace, stat, time } from "../kit.js";
import { usageSince } from "./usage-history.js";

export const title = "Overview";

const HOUR_MS = 3_600_000;
const SPANS = {
  day: { label: "24 hours", granularity: "hour", step: HOUR_MS, items: 24 },
  week: { label: "7 days", granularity: "hour", step: HOUR_MS, items: 168 },
  month: { label: "30 days", granularity: "day", step: 24 * HOUR_MS, items: 30 },
};
const PAGE_MAX = 100;
const REFRESH_MS = 15_000;

export async function render(root, { api, session, signal }) {
  const figures = h("div");
  const activity = h("div", { class: "stack" });
  const latency = h("div");
  const queues = h("div");
  const recent = h("div");
  root.append(
    pageHead("Overview", { subtitle: `Hello, ${session.account.full_name}.` }),
    figures,
    card(
      h(
        "div",
        { class: "row between" },
        "Requests and credits",
        spanPicker((span) => showActivity(activity, api, SPANS[span], signal)),
      ),
      activity,
    ),
    h("div", { class: "grid two" }, card("What waits", queues), card("Latency", latency)),
    card("Newest memories", recent),
  );
  await Promise.all([
    load(
      figures,
      () => Promise.all([api.get("/v1/usage", null, { signal }), api.get("/v1/collections", { limit: 1 }, { signal })]),
      ([usage, collections]) => showFigures(usage, collections.total_count),
      { signal },
    ),
    showActivity(activity, api, SPANS.day, signal),
    load(queues, () => waiting(api, signal), showQueues, { signal }),
    load(recent, () => api.get("/v1/memories", { limit: 5 }, { signal }), showRecent, { signal }),
  ]);
  showLatency(latency, session, signal);
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      replace(queues, showQueues(await waiting(api, signal)));
      showLatency(latency, session, signal);
    } catch (error) {
      if (!isAbort(error)) clearInterval(timer); // the figures stay as they were; leaving and coming back asks again
    }
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function showFigures({ credits, requests, storage, tier, period_end, rate_limit_per_minute }, collections) {
  const limited = credits.limit >= 0;
  return h(
    "div",
    { class: "grid stats" },
    stat("Memories", number(storage.memories), [`in ${count(collections, "collection")}, `, bytes(storage.bytes)]),
    stat("Documents", number(storage.documents), link("/documents", "Upload more")),
    h(
      "div",
      { class: "stat" },
      h("span", { class: "stat-name" }, "Credits this month"),
      h("strong", null, number(credits.used)),
      limited && meter(credits.percentage / 100, "Credits used"),
      h(
        "span",
        { class: "note" },
        limited
          ? `${percent(credits.percentage / 100, 2)} of ${compact(credits.limit)}, anew ${ago(period_end)}`
          : `unlimited in the tier ${tier}`,
      ),
    ),
    stat(
      "Requests this month",
      number(requests.used),
      `${number(requests.refused)} refused; ${rate_limit_per_minute < 0 ? "no limit" : `${number(rate_limit_per_minute)} a minute at most`}`,
    ),
  );
}

function spanPicker(choose) {
  const made = h(
    "select",
    { class: "picker", "aria-label": "Span of time", onchange: () => choose(made.value) },
    Object.entries(SPANS).map(([name, { label }]) => h("option", { value: name }, `Last ${label}`)),
  );
  return made;
}

async function showActivity(root, api, { granularity, step, items, label }, signal) {
  const first = Math.floor(Date.now() / step) * step - (items - 1) * step;
  await load(
    root,
    () => usageSince(api, granularity, first, signal),
    (found) => {
      const at = Array.from({ length: items }, (_, index) => first + index * step);
      const values = (name) => at.map((ms) => found.get(ms)?.[name] ?? 0);
      const total = (name) => values(name).reduce((sum, value) => sum + value, 0);
      const said = `${count(total("requests"), "request")} and ${count(total("credits"), "credit")} in the last ${label}`;
      if (!total("requests")) return empty("Nothing yet", "Requests appear here as they come.");
      return [
        timeChart({
          at,
          says: said,
          signal,
          series: [
            { label: "Requests", values: values("requests"), kind: "bars", tone: 1, format: compact },
            { label: "Credits", values: values("credits"), tone: 3, scale: "credits", format: compact },
          ],
        }),
        h("p", { class: "note" }, said + "."),
      ];
    },
    { signal },
  );
}

// What each call of this visit took inside the service: the network is not in it.
function showLatency(root, session, signal) {
  const timings = session.timings.filter(({ seconds }) => seconds >= 0);
  const sorted = timings.map(({ seconds }) => 1_000 * seconds).sort((a, b) => a - b);
  const quantile = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const said = `Half of this visit's ${count(sorted.length, "request")} took at most ${duration(quantile(0.5))} in the service, nine in ten at most ${duration(quantile(0.9))}`;
  replace(
    root,
    h(
      "div",
      { class: "stack" },
      timeChart({
        at: timings.map(({ at }, index) => at + index / 1_000),
        says: said,
        height: 160,
        signal,
        series: [{ label: "In the service", values: timings.map(({ seconds }) => 1_000 * seconds), tone: 2, format: duration }],
      }),
      h("p", { class: "note" }, said + ". ", link("/latency", "What all requests of the account took")),
    ),
  );
}

// -> [{name, path, waiting, oldest: ISO or null, more}], the newest hundred of each queue looked at
async function waiting(api, signal) {
  const queue = async (name, path, view, query) => {
    const page = await api.get(path, { ...query, limit: PAGE_MAX }, { signal });
    return {
      name,
      view,
      waiting: page.total_count ?? page.items.length,
      oldest: page.items.at(-1)?.created_at ?? null,
      more: Boolean(page.next_cursor),
    };
  };
  return Promise.all([
    queue("Memory jobs, queued", "/v1/memories/jobs", "/jobs?status=queued", { status: "queued" }),
    queue("Memory jobs, at work", "/v1/memories/jobs", "/jobs?status=processing", { status: "processing" }),
    queue("Documents, waiting", "/v1/documents", "/documents", { status: "pending" }),
    queue("Documents, at work", "/v1/documents", "/documents", { status: "processing" }),
    queue("Webhook dead letters", "/v1/webhooks/dead-letters", "/webhooks?view=dead-letters", {}),
  ]);
}

function showQueues(queues) {
  const line = ({ name, view, waiting, oldest, more }) =>
    h(
      "li",
      { class: "row between" },
      link(view, name),
      h(
        "span",
        { class: "row" },
        oldest && h("span", { class: "note" }, more ? "oldest before " : "oldest ", time(oldest)),
        badge(number(waiting), waiting ? "warn" : "good"),
      ),
    );
  return h("ul", { class: "list plain" }, queues.map(line));
}

function showRecent({ items }) {
  if (!items.length) {
    return empty(
      "Nothing is stored yet",
      "Store a memory here, or make an API key and let your application do it.",
      h("div", { class: "row" }, link("/memories", "Store a memory"), link("/keys", "Make an API key")),
    );
  }
  return h(
    "ul",
    { class: "list plain" },
    items.map((memory) =>
      h(
        "li",
        null,
        h("a", { class: "row-link", href: `/dashboard/memories/${memory.id}` }, h("span", { class: "clamped" }, memory.content)),
        h(
          "span",
          { class: "note" },
          memory.speaker ? `${memory.speaker}, ` : "",
          h("time", { datetime: memory.created_at, title: datetime(memory.created_at) }, ago(memory.created_at)),
        ),
      ),
    ),
  );
}
