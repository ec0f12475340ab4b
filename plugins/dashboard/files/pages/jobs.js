// Jobs: what is done in the background, how far it is, and why something failed.

import { count, datetime, duration, number, percent } from "../format.js";
import {
  badge,
  button,
  confirm,
  dialog,
  empty,
  facts,
  h,
  identifier,
  isAbort,
  link,
  load,
  meter,
  pageHead,
  pages,
  time,
  toast,
  told,
} from "../kit.js";

export const title = "Jobs";

const KINDS = { "memories.index": "Indexing", "memories.process": "Ingestion", "documents.process": "Document" };
const STATES = {
  queued: ["queued", "plain"],
  processing: ["at work", "accent"],
  completed: ["completed", "good"],
  failed: ["failed", "bad"],
};
const PAGE_ITEMS = 50;
const REFRESH_MS = 3_000;

export async function render(root, { api, route, signal }) {
  let status = route.query.get("status") ?? "";
  let busy = false; // whether any job that is shown is not over
  const list = pages({
    signal,
    noun: ["job", "jobs"],
    fetch: async (cursor) => {
      const page = await api.get("/v1/memories/jobs", { status, cursor, limit: PAGE_ITEMS }, { signal });
      busy = page.items.some((job) => !over(job));
      return page;
    },
    empty: empty(
      status ? "No job is like that" : "No jobs in the last week",
      "Conversations that are processed, uploads and memories whose index waits become jobs. They are kept for a week.",
    ),
    columns: [
      {
        label: "Job",
        cell: (job) => h("button", { type: "button", class: "as-link", onclick: () => open(job.job_id) }, KINDS[job.kind] ?? job.kind),
      },
      { label: "Status", cell: stateBadge },
      {
        label: "Progress",
        cell: (job) =>
          job.status === "failed"
            ? h("span", { class: "note clamped" }, told({ message: job.error }))
            : h("div", { class: "share" }, meter(job.progress, "Progress"), h("span", { class: "note" }, percent(job.progress))),
      },
      { label: "What it did", kind: "wide", cell: (job) => h("span", { class: "note" }, summary(job)) },
      { label: "Attempts", kind: "number", cell: ({ attempts }) => number(attempts) },
      { label: "Accepted", cell: ({ created_at }) => h("span", { class: "nowrap" }, time(created_at)) },
    ],
  });
  const choose = (event) => {
    status = event.target.value;
    route.note({ status });
    list.reload();
  };
  const filter = h(
    "select",
    { "aria-label": "Status", onchange: choose },
    h("option", { value: "" }, "Every status"),
    Object.entries(STATES).map(([name, [label]]) => h("option", { value: name, selected: name === status }, label)),
  );

  const open = (id) =>
    dialog(
      "Job",
      (close) => {
        const inside = h("div", { class: "stack" });
        load(
          inside,
          () => api.get(`/v1/memories/jobs/${id}`, null, { signal }),
          (job) => details(job, close),
          { signal },
        );
        return inside;
      },
      { wide: true },
    );

  function details(job, close) {
    const undo = async () => {
      if (
        !(await confirm("Undo this ingestion?", "The memories it created are deleted but for those edited since, and what they had superseded holds again.", {
          label: "Undo",
        }))
      )
        return;
      const { deleted, restored, kept } = await api.post(`/v1/memories/jobs/${job.job_id}/undo`);
      const edited = kept.length ? ` ${number(kept.length)} kept, since they were edited.` : "";
      toast(`${count(deleted, "memory", "memories")} deleted, ${number(restored)} restored.${edited}`);
      close();
    };
    const events = job.result?.events ?? [];
    return [
      facts([
        ["Kind", KINDS[job.kind] ?? job.kind],
        ["Status", stateBadge(job)],
        ["Accepted", datetime(job.created_at)],
        ["Began", job.started_at && datetime(job.started_at)],
        ["Took", job.finished_at && job.started_at && took(job)],
        ["Attempts", number(job.attempts)],
        ["Job", identifier(job.job_id)],
      ]),
      job.error &&
        h(
          "div",
          { class: "stack tight" },
          h("h3", null, job.status === "failed" ? "Why it failed" : "Why the last attempt failed"),
          h("p", { class: "text" }, told({ message: job.error })),
        ),
      events.length > 0 &&
        h("div", { class: "stack tight" }, h("h3", null, "What it learned"), h("ul", { class: "list" }, events.map(eventLine))),
      job.result &&
        h("details", null, h("summary", null, "The whole result"), h("pre", { tabindex: "0" }, JSON.stringify(job.result, null, 2))),
      job.kind === "memories.process" &&
        job.status === "completed" &&
        events.length > 0 &&
        h("div", { class: "row end" }, button("Undo", undo, { kind: "danger" })),
    ];
  }

  root.append(
    pageHead("Jobs", { subtitle: "Work in the background: indexing, ingestion and documents." }),
    h(
      "div",
      { class: "filters" },
      filter,
      button("Refresh", () => list.reload()),
    ),
    list,
  );
  const timer = setInterval(() => {
    const reading = document.querySelector("dialog[open]") || list.contains(document.activeElement);
    if (busy && !document.hidden && !reading) list.reload().catch((error) => isAbort(error) || clearInterval(timer));
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  if (route.query.get("job")) await open(route.query.get("job"));
}

function took({ started_at, finished_at }) {
  const ms = Date.parse(finished_at) - Date.parse(started_at);
  return ms < 1 ? "less than a millisecond" : duration(ms);
}

const over = ({ status }) => status === "completed" || status === "failed";
const stateBadge = ({ status }) => badge(...STATES[status]);

function summary({ kind, result }) {
  if (!result) return "";
  if (kind === "memories.process")
    return `${count(result.memories_created, "memory", "memories")} created, ${number(result.skipped)} known already`;
  if (kind === "memories.index") return `${number(result.indexed)} indexed`;
  return result.chunk_count == null ? "" : `${count(result.chunk_count, "chunk")} stored`;
}

const eventLine = ({ event, memory_id, memory, reason, previous_content }) =>
  h(
    "li",
    { class: "stack tight" },
    h(
      "div",
      null,
      badge(event, event === "ADD" ? "good" : event === "NOOP" ? "plain" : "warn"),
      " ",
      memory_id ? link(`/memories/${memory_id}`, memory) : memory,
    ),
    h("p", { class: "note" }, reason, previous_content && ` Before: ${previous_content}`),
  );
