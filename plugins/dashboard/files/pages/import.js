// Taking an export in: a part at a time, so that one sees how far it has come, may stop it, and can go on later.

import { LONG_SECONDS_MAX } from "../api.js";
import { count, number, percent } from "../format.js";
import { button, card, form, h, isAbort, meter, replace, table, told as said } from "../kit.js";

const PART_RECORDS = 50; // unless the export says how many its blocks have
const FILE_BYTES_MAX = 512 * 1024 * 1024;
const MANIFEST = "manifest";
const BUSY = [429, 503];
const WAIT_SECONDS = 5;

export function importCard(api, signal) {
  const told = h("div", { class: "stack" });
  const made = form([{ name: "file", label: "Export", type: "file", accept: ".jsonl,.ndjson", required: true }], {
    submit: "Import",
    inline: true,
    onsubmit: async () => {
      const { files } = made.control("file");
      if (files.length) await run(api, files[0], told, signal);
    },
  });
  return card(
    "Bring an export in",
    h(
      "p",
      null,
      "The file of an export, from this Mneme or another one. Contents, versions and times stay; what is here already is left alone, so an import can be repeated. A memory that was not here costs a credit. For the files of other products there is “mneme import”.",
    ),
    made,
    told,
  );
}

async function run(api, file, told, signal) {
  const stopped = new AbortController();
  const bar = meter(0, `Import of ${file.name}`);
  const line = h("p", { class: "note", role: "status" }, "Reading the file…");
  const stop = button("Stop", () => stopped.abort(), { kind: "small" });
  const sums = { created: {}, known: {}, skipped: {} };
  let done = 0;
  let verified = true;
  replace(told, bar, h("div", { class: "row between" }, line, stop));
  try {
    const { records, size, signatures } = parsed(await text(file));
    while (done < records.length) {
      const part = records.slice(done, done + size);
      const both = AbortSignal.any([signal, stopped.signal]);
      const signature = JSON.stringify(signatures[done / size] ?? null);
      const reply = await sent(api, `{"records":[${part.join(",")}],"first":${done},"signature":${signature}}`, line, both);
      add(sums, reply);
      verified &&= reply.verified;
      done += part.length;
      bar.value = done / records.length;
      replace(line, `${percent(done / records.length)}: ${number(done)} of ${count(records.length, "record")}`);
    }
    const whose = verified
      ? "This installation has signed the export for this account: who did what, and when, is as it says."
      : "This installation has not signed the export for this account: those who made its versions are marked as imported.";
    replace(told, h("p", { role: "status" }, h("strong", null, `Imported: ${summary(sums)}.`)), h("p", { class: "note" }, whose), byKind(sums));
  } catch (error) {
    if (signal.aborted) return;
    const why = isAbort(error) ? "It was stopped." : said(error);
    const rest = done ? ` ${count(done, "record was", "records were")} taken in or known before; import the file again to go on.` : "";
    replace(told, h("p", { class: "problem", role: "alert" }, why, rest));
  }
}

async function text(file) {
  if (file.size > FILE_BYTES_MAX) throw new Error("This file is too large for a browser. POST /v1/account/import takes it in parts.");
  return file.text();
}

// -> {records, size, signatures}: the lines of an export as they are, since each sign of them is signed; how many lines are a part; and
// each part's signature, where there are any. The manifest says whether all of them are here.
function parsed(lines) {
  const entries = lines
    .split("\n")
    .map((line, index) => [line, index + 1])
    .filter(([line]) => line.trim())
    .map(([line, place]) => {
      try {
        const { kind, record } = JSON.parse(line);
        if (typeof kind === "string" && record && typeof record === "object") return { kind, record, line };
      } catch {
        // said below
      }
      throw new Error(`Line ${number(place)} is not a record of an export.`);
    });
  const last = entries.at(-1);
  if (last?.kind !== MANIFEST) throw new Error("This export is not whole: its last line, the manifest, is missing.");
  const records = entries.slice(0, -1).map(({ line }) => line);
  const { records: all, block_records: size, blocks } = last.record;
  if (all !== records.length) throw new Error(`This export is not whole: it has ${number(records.length)} of ${count(all, "record")}.`);
  const known = size >= 1 && size <= PART_RECORDS && Array.isArray(blocks);
  return known ? { records, size, signatures: blocks } : { records, size: PART_RECORDS, signatures: [] };
}

// Sends a part; while the service is busy, or the account asks too often, it waits as long as it is told to.
async function sent(api, text, line, signal) {
  for (;;) {
    try {
      return await api.call("POST", "/v1/account/import/parts", { text, signal, seconds: LONG_SECONDS_MAX });
    } catch (error) {
      if (!BUSY.includes(error.status) || error.code === "quota_exceeded") throw error;
      const seconds = Number(error.retryAfter) || WAIT_SECONDS;
      replace(line, `The service asks to wait ${count(seconds, "second")}…`);
      await pause(1_000 * seconds, signal);
    }
  }
}

const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });

function add(sums, reply) {
  for (const [outcome, kinds] of Object.entries(sums))
    for (const [kind, many] of Object.entries(reply[outcome])) kinds[kind] = (kinds[kind] ?? 0) + many;
}

const total = (kinds) => Object.values(kinds).reduce((sum, many) => sum + many, 0);

const summary = ({ created, known, skipped }) =>
  `${count(total(created), "record")} taken in, ${number(total(known))} known before, ${number(total(skipped))} not of a kind that is taken in`;

function byKind(sums) {
  const kinds = [...new Set(Object.values(sums).flatMap(Object.keys))].sort();
  return table(
    [
      { label: "Kind", cell: (kind) => kind.replaceAll("_", " ") },
      ...[
        ["Taken in", "created"],
        ["Known before", "known"],
        ["Left out", "skipped"],
      ].map(([label, outcome]) => ({ label, kind: "number", cell: (kind) => number(sums[outcome][kind] ?? 0) })),
    ],
    kinds,
  );
}
