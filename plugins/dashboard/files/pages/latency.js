// Latency: how long the account's requests took by operation and hour, and which share of them failed.

import { timeChart } from "../charts.js";
import { count, duration, number, percent } from "../format.js";
import { badge, card, empty, h, load, mono, pageHead, stat, table } from "../kit.js";

export const title = "Latency";

const HOUR_MS = 3_600_000;
const SPANS = [
  [24, "24 hours"],
  [48, "2 days"],
  [192, "8 days"],
];
const FAILING = 0.05; // a share of errors that is pointed out

export async function render(root, { api, signal }) {
  const place = h("div", { class: "stack" });
  const show = (hours) => load(place, () => api.get("/v1/usage/latency", { hours }, { signal }), (found) => figures(found, hours, signal), { signal });
  const span = h(
    "select",
    { class: "picker", "aria-label": "Span of time", onchange: () => show(Number(span.value)) },
    SPANS.map(([hours, label]) => h("option", { value: hours }, `Last ${label}`)),
  );
  root.append(
    pageHead("Latency", {
      subtitle: "How long requests took in the service, from where each is let in to its answer, and how many failed. The network is not in it.",
      actions: [span],
    }),
    place,
  );
  await show(SPANS[0][0]);
}

function figures({ since, total, by_operation: operations, by_hour: hours }, span, signal) {
  if (!total.requests) return empty("Nothing was asked in this time", "Choose a longer one, or make a request.");
  return [
    h(
      "div",
      { class: "grid stats" },
      stat("Requests", number(total.requests), `in the last ${count(span, "hour")}`),
      stat("Half within", duration(total.p50_ms), `mean ${duration(total.mean_ms)}`),
      stat("95 of 100 within", duration(total.p95_ms), `99 of 100 within ${duration(total.p99_ms)}`),
      stat("Errors", percent(total.error_share, 1), `${number(total.client_errors)} of the caller, ${number(total.server_errors)} of the service`),
    ),
    card("By the hour", overTime(Date.parse(since), hours, span, signal)),
    card("By operation", byOperation(operations)),
  ];
}

function overTime(first, hours, span, signal) {
  const at = Array.from({ length: span }, (_, index) => first + index * HOUR_MS);
  const found = new Map(hours.map((one) => [Date.parse(one.period_start), one]));
  const values = (name) => at.map((ms) => found.get(ms)?.[name] ?? null);
  const slowest = hours.reduce((most, one) => (one.p95_ms > most.p95_ms ? one : most));
  const said = `In the slowest hour 95 of 100 requests were answered within ${duration(slowest.p95_ms)}`;
  return [
    timeChart({
      at,
      says: said,
      signal,
      series: [
        { label: "Half within", values: values("p50_ms"), tone: 2, format: duration },
        { label: "95 of 100 within", values: values("p95_ms"), tone: 1, format: duration },
        { label: "Errors", values: values("error_share"), tone: 3, scale: "errors", format: (share) => percent(share, 0) },
      ],
    }),
    h("p", { class: "note" }, said + "."),
  ];
}

const byOperation = (operations) =>
  table(
    [
      { label: "Operation", kind: "wide", cell: ({ operation }) => mono(operation) },
      { label: "Requests", kind: "number", cell: ({ requests }) => number(requests) },
      { label: "Half within", kind: "number", cell: ({ p50_ms }) => duration(p50_ms) },
      { label: "95 of 100", kind: "number", cell: ({ p95_ms }) => duration(p95_ms) },
      { label: "99 of 100", kind: "number", cell: ({ p99_ms }) => duration(p99_ms) },
      { label: "Errors", kind: "number", cell: errors },
    ],
    operations,
  );

const errors = ({ error_share, client_errors, server_errors }) =>
  h(
    "span",
    { title: `${number(client_errors)} answered with 4xx, ${number(server_errors)} with 5xx` },
    error_share >= FAILING ? badge(percent(error_share, 1), server_errors ? "bad" : "warn") : percent(error_share, 1),
  );
