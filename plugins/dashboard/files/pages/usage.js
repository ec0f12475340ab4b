// Usage: credits and requests over time, and which operations and keys they went to.

import { timeChart } from "../charts.js";
import { compact, count, date, number, percent } from "../format.js";
import { card, empty, h, load, meter, mono, pageHead, replace, stat, table } from "../kit.js";
import { usageSince } from "./usage-history.js";

export const title = "Usage";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PAGE_MAX = 100;
// The spans of each granularity, as many as fit a chart; months go by the calendar.
const SPANS = {
  hour: [
    ["48", "2 days"],
    ["168", "7 days"],
    ["720", "30 days"],
  ],
  day: [
    ["30", "30 days"],
    ["90", "90 days"],
    ["365", "365 days"],
  ],
  month: [
    ["12", "12 months"],
    ["24", "24 months"],
  ],
};
const NAMES = { hour: "by the hour", day: "by the day", month: "by the month" };

export async function render(root, { api, signal }) {
  const figures = h("div");
  const history = h("div", { class: "stack" });
  const operations = h("div");
  const keys = h("div");
  root.append(
    pageHead("Usage", { subtitle: "What your requests cost. Months are those of the calendar, in UTC." }),
    figures,
    card(
      "Over time",
      picker((granularity, items) => showHistory(history, api, granularity, items, signal)),
      history,
    ),
    card("By API key, this month", keys),
    card("By operation, this month", operations),
  );
  await Promise.all([
    load(
      figures,
      () => api.get("/v1/usage", null, { signal }),
      (usage) => {
        replace(operations, byOperation(usage));
        load(
          keys,
          () => keyNames(api, signal),
          (names) => byKey(usage, names),
          { signal },
        );
        return showFigures(usage);
      },
      { signal },
    ),
    showHistory(history, api, "day", 30, signal),
  ]);
}

function showFigures({ credits, requests, tier, period_start, period_end, rate_limit_per_minute }) {
  const limited = credits.limit >= 0;
  const used = limited && credits.limit ? credits.used / credits.limit : 0;
  return h(
    "div",
    { class: "grid stats" },
    h(
      "div",
      { class: "stat" },
      h("span", { class: "stat-name" }, "Credits this month"),
      h("strong", null, number(credits.used)),
      limited && meter(used, "Share of the month's credits that is used"),
      h(
        "span",
        { class: "note" },
        limited ? `${percent(used, 1)} of ${number(credits.limit)}; ${number(credits.remaining)} left` : `unlimited in the tier ${tier}`,
      ),
    ),
    stat(
      "Requests this month",
      number(requests.used),
      rate_limit_per_minute < 0 ? "no limit a minute" : `${number(rate_limit_per_minute)} a minute at most`,
    ),
    stat("Refused by a limit", number(requests.refused), "they cost nothing"),
    stat("Month", date(period_start), `anew on ${date(period_end)}`),
  );
}

function picker(choose) {
  const span = h("select", { "aria-label": "Span of time" });
  const granularity = h(
    "select",
    { "aria-label": "Granularity" },
    Object.entries(NAMES).map(([name, label]) => h("option", { value: name, selected: name === "day" }, label)),
  );
  const fill = () =>
    replace(
      span,
      SPANS[granularity.value].map(([items, label]) => h("option", { value: items }, `Last ${label}`)),
    );
  const tell = () => choose(granularity.value, Number(span.value));
  granularity.addEventListener("change", () => (fill(), tell()));
  span.addEventListener("change", tell);
  fill();
  return h("div", { class: "filters" }, granularity, span);
}

function showHistory(root, api, granularity, items, signal) {
  const at = starts(granularity, items);
  return load(
    root,
    () => usageSince(api, granularity, at[0], signal),
    (found) => {
      const values = (name) => at.map((ms) => found.get(ms)?.[name] ?? 0);
      const [credits, requests] = [values("credits"), values("requests")];
      const sum = (list) => list.reduce((total, value) => total + value, 0);
      if (!sum(requests) && !sum(credits)) return empty("Nothing was used in this time", "Choose a longer one, or make a request.");
      const said = `${count(sum(credits), "credit")} and ${count(sum(requests), "request")} ${NAMES[granularity]}, since ${date(new Date(at[0]).toISOString())}`;
      return [
        timeChart({
          at,
          says: said,
          signal,
          height: 240,
          series: [
            { label: "Credits", values: credits, kind: "bars", tone: 1, format: compact },
            { label: "Requests", values: requests, tone: 3, scale: "requests", format: compact },
          ],
        }),
        h("p", { class: "note" }, said + "."),
      ];
    },
    { signal },
  );
}

// The beginnings of the last `items` hours, days or months, in UTC, oldest first.
function starts(granularity, items) {
  const now = new Date();
  if (granularity === "month")
    return Array.from({ length: items }, (_, index) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - (items - 1 - index)));
  const step = granularity === "hour" ? HOUR_MS : DAY_MS;
  const last = Math.floor(now / step) * step;
  return Array.from({ length: items }, (_, index) => last - (items - 1 - index) * step);
}

const shareCell = (part, whole) =>
  h(
    "div",
    { class: "share" },
    meter(whole ? part / whole : 0, "Share of the credits"),
    h("span", { class: "note" }, percent(whole ? part / whole : 0)),
  );

function byOperation({ by_operation: shares, credits }) {
  if (!shares.length) return empty("Nothing yet", "Operations appear here as they are called.");
  const [priced, free] = [shares.filter((share) => share.credits), shares.filter((share) => !share.credits)];
  const columns = [
    { label: "Operation", kind: "wide", cell: ({ operation }) => mono(operation) },
    { label: "Requests", kind: "number", cell: (share) => number(share.count) },
    { label: "Credits", kind: "number", cell: (share) => number(share.credits) },
    { label: "Share", cell: (share) => shareCell(share.credits, credits.used) },
  ];
  return h(
    "div",
    { class: "stack" },
    priced.length ? table(columns, priced) : null,
    free.length
      ? h(
          "details",
          { open: !priced.length },
          h("summary", null, `${count(free.length, "operation")} that cost nothing`),
          table(columns.slice(0, 2), free),
        )
      : null,
  );
}

function byKey({ by_api_key: shares, credits }, names) {
  if (!shares.length) return empty("Nothing yet", "Keys appear here as they are used.");
  return table(
    [
      {
        label: "Key",
        kind: "wide",
        cell: ({ api_key_id: id }) =>
          id
            ? (names.get(id) ?? h("span", { class: "note" }, "a deleted key"))
            : h("span", { class: "note" }, "this dashboard, and background work"),
      },
      { label: "Requests", kind: "number", cell: (share) => number(share.requests) },
      { label: "Credits", kind: "number", cell: (share) => number(share.credits) },
      { label: "Share", cell: (share) => shareCell(share.credits, credits.used) },
    ],
    shares,
  );
}

async function keyNames(api, signal) {
  const names = new Map();
  let cursor;
  do {
    const page = await api.get("/v1/auth/api-keys", { limit: PAGE_MAX, cursor }, { signal });
    for (const { id, name } of page.items) names.set(id, name);
    cursor = page.next_cursor;
  } while (cursor);
  return names;
}
