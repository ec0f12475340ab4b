// Documents: files that are read, cut into chunks and searched like memories. Several can be uploaded at once.

import { bytes, count, number, percent } from "../format.js";
import { badge, card, empty, form, h, isAbort, link, meter, pageHead, pages, replace, time, told } from "../kit.js";
import { collectionChoices, collectionHelp } from "./memory-parts.js";

export const title = "Documents";

const AT_ONCE = 2;
const FILES_MAX = 100;
const POLL_MS = 1_000;
export const STATES = {
  pending: ["waiting", "plain"],
  processing: ["being read", "accent"],
  completed: ["ready", "good"],
  failed: ["failed", "bad"],
};
export const state = ({ status }) => badge(...(STATES[status] ?? [status]));

export async function render(root, { api, route, signal }) {
  const asked = Object.fromEntries(route.query);
  const collections = await collectionChoices(api, signal, asked.collection_id);
  const list = pages({
    signal,
    noun: ["document", "documents"],
    fetch: (cursor) =>
      api.get("/v1/documents", { cursor, status: asked.status, collection_id: asked.collection_id, limit: 50 }, { signal }),
    empty:
      asked.status || asked.collection_id
        ? empty("No document matches")
        : empty(
            "No documents yet",
            "PDF, Office files, web pages, mail, subtitles, text and recordings: whatever you upload is found by the same searches as memories.",
          ),
    columns: [
      {
        label: "Document",
        kind: "wide",
        cell: (one) =>
          h(
            "div",
            null,
            link(`/documents/${one.id}`, one.title || one.filename),
            h("div", { class: "note" }, one.title && one.title !== one.filename ? `${one.filename}, ` : "", bytes(one.size_bytes)),
          ),
      },
      {
        label: "State",
        cell: (one) => h("div", null, state(one), one.error && h("div", { class: "problem" }, told(one.error))),
      },
      { label: "Chunks", kind: "number", cell: (one) => number(one.chunk_count) },
      { label: "Uploaded", cell: (one) => time(one.created_at) },
    ],
  });
  const narrow = form(
    [
      {
        name: "status",
        label: "State",
        type: "select",
        options: [["", "Any"], ...Object.entries(STATES).map(([value, [said]]) => [value, said])],
        value: asked.status,
      },
      {
        name: "collection_id",
        label: "Collection",
        type: "select",
        options: [["", "All collections"], ...collections],
        value: asked.collection_id,
        help: collectionHelp(collections),
      },
    ],
    {
      submit: "Filter",
      inline: true,
      kind: "",
      onsubmit: async (values) => (Object.assign(asked, values), route.note(values), list.reload()),
    },
  );
  root.append(
    pageHead("Documents", { subtitle: "Files that are read once and then searched like memories." }),
    uploader(api, collections, list, signal),
    narrow,
    list,
  );
}

function uploader(api, collections, list, signal) {
  const queue = h("ul", { class: "uploads" });
  const waiting = [];
  let running = 0;
  const next = () => {
    while (running < AT_ONCE && waiting.length) {
      running += 1;
      const send = waiting.shift();
      send().finally(() => ((running -= 1), next()));
    }
  };
  const add = (files, { collection_id, tags }) => {
    for (const file of [...files].slice(0, FILES_MAX)) {
      const line = h("li", null);
      queue.prepend(line);
      const body = new FormData();
      if (collection_id) body.set("collection_id", collection_id);
      if (tags.length) body.set("tags", tags.join(","));
      body.set("file", file);
      waiting.push(() => upload(api, line, file, body, signal).then(list.reload));
      replace(line, upload.line(file.name, "waiting to be sent"));
    }
    if (files.length > FILES_MAX)
      queue.prepend(
        h(
          "li",
          null,
          h("span", { class: "problem" }, `Only the first ${FILES_MAX} files were taken. For whole folders there is “mneme ingest”.`),
        ),
      );
    next();
  };
  const made = form(
    [
      { name: "files", label: "Files", type: "file", multiple: true, required: true, help: "Several at once, or drop them here." },
      { name: "collection_id", label: "Collection", type: "select", options: [["", "Default collection"], ...collections] },
      { name: "tags", label: "Tags", type: "tags", help: "With commas between them." },
    ],
    {
      submit: "Upload",
      onsubmit: async (values) => {
        const input = made.control("files");
        add(input.files, values);
        input.value = "";
      },
    },
  );
  made.classList.add("upload-form");
  const box = card("Upload", made, queue);
  const over = (on) => (event) => (event.preventDefault(), box.classList.toggle("dropping", on));
  for (const [name, on] of [
    ["dragover", true],
    ["dragleave", false],
  ])
    box.addEventListener(name, over(on));
  box.addEventListener("drop", (event) => (over(false)(event), add(event.dataTransfer.files, made.values())));
  return box;
}

// Sends the file, then watches its document until it is ready. Ends in every case with a line that says how it went.
async function upload(api, line, file, body, signal) {
  const bar = meter(0, `Upload of ${file.name}`);
  const share = h("span", null, percent(0));
  replace(line, upload.line(file.name, share), bar);
  try {
    const onprogress = (sent) => ((bar.value = sent), replace(share, percent(sent)));
    const { status, body: reply } = await api.upload("/v1/documents/upload", body, { signal, onprogress });
    const path = `/documents/${reply.document.id}`;
    let document = reply.document;
    replace(line, upload.line(file.name, "being read"), h("progress", { class: "meter", "aria-label": "Being read" }));
    while (!["completed", "failed"].includes(document.status)) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      document = await api.get("/v1" + path, null, { signal });
    }
    const outcome =
      document.status === "failed"
        ? h("span", { class: "problem" }, document.error ? told(document.error) : "It could not be read.")
        : `${count(document.chunk_count, "chunk")}${status === 200 ? ", was here already" : ""}`;
    const job = reply.job_id && [", ", link(`/jobs?job=${reply.job_id}`, "its job")];
    replace(line, upload.line(link(path, file.name), state(document), " ", outcome, job));
  } catch (error) {
    if (!isAbort(error)) replace(line, upload.line(file.name, h("span", { class: "problem", role: "alert" }, told(error))));
  }
}

upload.line = (name, ...said) => h("div", { class: "row between" }, h("span", null, name), h("span", { class: "note" }, said));
