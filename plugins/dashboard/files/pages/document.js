// One document: what it is, what was read from it, chunk by chunk, and the file itself.

import { bytes, datetime, duration, number } from "../format.js";
import { button, card, confirm, empty, facts, h, identifier, link, pageHead, pages, replace, tags, time, toast, told } from "../kit.js";
import { state } from "./documents.js";

export const title = "Document";

const POLL_MS = 1_500;

export async function render(root, { api, route, signal }) {
  const path = `/v1/documents/${encodeURIComponent(route.params.id)}`;
  const show = async () => {
    const one = await api.get(path, null, { signal });
    replace(root, head(one), details(one), chunks(one));
    if (one.status === "pending" || one.status === "processing") setTimeout(() => signal.aborted || show().catch(() => {}), POLL_MS);
  };
  const remove = async (one) => {
    if (
      !(await confirm("Delete this document?", `“${one.filename}” goes with everything that was read from it, and cannot be brought back.`))
    )
      return;
    await api.delete(path);
    toast(`“${one.filename}” is deleted.`);
    await route.go("/documents");
  };
  const head = (one) =>
    h(
      "div",
      { class: "stack tight" },
      h("p", null, link("/documents", "← Documents")),
      pageHead(one.title || one.filename, {
        actions: [
          h("a", { class: "button", href: api.href(`${path}/content`), download: one.filename }, "Download"),
          button("Delete", () => remove(one), { kind: "danger" }),
        ],
      }),
    );
  const details = (one) =>
    card(
      null,
      h("p", { class: "row" }, state(one), tags(one.tags)),
      one.error && h("p", { class: "problem" }, told(one.error)),
      facts([
        ["Id", identifier(one.id)],
        ["File", one.filename],
        ["Size", bytes(one.size_bytes)],
        ["Kind", one.media_type],
        ["Pages", one.page_count && number(one.page_count)],
        ["Length", one.duration_seconds && duration(1_000 * one.duration_seconds)],
        ["Chunks", number(one.chunk_count)],
        ["Uploaded", time(one.created_at, datetime(one.created_at))],
        ["SHA-256", identifier(one.sha256)],
      ]),
    );
  const chunks = (one) =>
    one.status === "completed" &&
    h(
      "section",
      { class: "stack" },
      h("h2", null, "What was read"),
      pages({
        signal,
        noun: ["chunk", "chunks"],
        empty: empty("Nothing to read was in it"),
        fetch: (cursor) => api.get(`${path}/chunks`, { cursor, limit: 50 }, { signal }),
        row: (chunk) =>
          h(
            "article",
            { class: "stack tight" },
            h(
              "p",
              { class: "about note" },
              h("strong", null, number(chunk.index + 1)),
              chunk.heading && h("span", null, chunk.heading),
              chunk.page != null && h("span", null, `page ${number(chunk.page)}`),
              chunk.start_seconds != null && h("span", null, `from ${duration(1_000 * chunk.start_seconds)}`),
              chunk.memory_id && link(`/memories/${chunk.memory_id}`, "as a memory"),
            ),
            h("p", { class: "text" }, chunk.content),
          ),
      }),
    );
  await show();
}
