// What several views have of a memory: a line in a list, the form to write one, the names of the collections.

import { datetime } from "../format.js";
import { indented, objectText } from "../json-text.js";
import { badge, h, link, tags, time } from "../kit.js";

const COLLECTIONS_OFFERED_MAX = 100;

// [[id, name], ...]: the newest hundred, and `wanted` among them however old it is; one that does not exist has its id for a name.
export async function collectionChoices(api, signal, wanted) {
  const page = await api.get("/v1/collections", { limit: COLLECTIONS_OFFERED_MAX }, { signal });
  const choices = page.items.map(({ id, name }) => [id, name]);
  if (wanted && !choices.some(([id]) => id === wanted)) choices.push([wanted, await collectionName(api, wanted, signal)]);
  return Object.assign(choices, { more: !!page.next_cursor });
}

async function collectionName(api, id, signal) {
  try {
    return (await api.get(`/v1/collections/${encodeURIComponent(id)}`, null, { signal })).name;
  } catch (error) {
    if (error.status !== 404) throw error;
    return id;
  }
}

// What a choice among collections is explained with: how those are found that it does not offer.
export const collectionHelp = (collections) =>
  collections.more ? ["The newest are offered; choose an older one under ", link("/collections", "Collections"), "."] : null;

export function memoryLine(memory, collections = []) {
  return h(
    "article",
    { class: "stack tight" },
    h(
      "a",
      { class: "row-link", href: `/dashboard/memories/${memory.id}` },
      memory.title && h("strong", null, memory.title),
      h("span", { class: "clamped" }, memory.content),
    ),
    memoryLine.about(memory, collections),
  );
}

// Who, where and when, on one line.
memoryLine.about = (memory, collections = []) => {
  const collection = collections.find(([id]) => id === memory.collection_id);
  return h(
    "p",
    { class: "about note" },
    memory.speaker && h("span", null, memory.speaker),
    h("span", null, time(memory.created_at, datetime(memory.created_at))),
    collection && h("span", null, `in ${collection[1]}`),
    memory.user_id && h("span", null, `user ${memory.user_id}`),
    memory.session_id && h("span", null, `session ${memory.session_id}`),
    memory.conflict_status && memory.conflict_status !== "none" && badge(memory.conflict_status, "warn"),
    memory.superseded_by_id && badge("superseded", "warn"),
    memory.searchable === false && badge("being indexed", "warn"),
    memory.tags?.length > 0 && h("span", null, tags(memory.tags)),
  );
};

// The fields of a new memory, or, with one, those of it that can be changed. metadata: its metadata, as JSON.
export function memoryFields(memory, collections, metadata = "{}") {
  const isNew = !memory.id;
  return [
    { name: "content", label: "Content", type: "textarea", rows: 5, required: true, maxlength: 100_000, value: memory.content },
    { name: "title", label: "Title", maxlength: 255, value: memory.title ?? "" },
    isNew && {
      name: "collection_id",
      label: "Collection",
      type: "select",
      options: [["", "Default collection"], ...collections],
      value: memory.collection_id,
      help: collectionHelp(collections),
    },
    { name: "tags", label: "Tags", type: "tags", value: memory.tags, help: 'With commas between them; quotes around one that has a comma: "Smith, John".' },
    {
      name: "importance",
      label: "Importance, 0 to 1",
      type: "number",
      min: 0,
      max: 1,
      step: "any",
      required: !isNew,
      value: memory.importance ?? 0.5,
    },
    isNew && { name: "user_id", label: "User", maxlength: 255 },
    isNew && { name: "session_id", label: "Session", maxlength: 255 },
    isNew && { name: "speaker", label: "Speaker", maxlength: 255 },
    {
      name: "metadata",
      label: "Metadata, as JSON",
      type: "textarea",
      rows: 3,
      spellcheck: "false",
      value: indented(metadata),
    },
  ].filter(Boolean);
}

// What a form says of a new memory, as JSON that the API takes: empty texts are absent.
export const newMemory = (values) => sent(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value != null)));

// What changes of one: its changed fields alone, where an emptied title is none.
export const changedMemory = ({ title, ...changed }) => sent(title === undefined ? changed : { ...changed, title: title || null });

// Metadata goes as it was typed, since a number of it may be one that JavaScript does not have.
function sent({ metadata, ...rest }) {
  const fields = Object.entries({ ...rest, wait_for_index: true }).map(([name, value]) => [name, JSON.stringify(value)]);
  if (metadata !== undefined) fields.push(["metadata", checkedJson(metadata.trim() || "{}")]);
  return objectText(Object.fromEntries(fields));
}

function checkedJson(text) {
  try {
    JSON.parse(text);
  } catch (wrong) {
    throw Object.assign(new Error(`This is not JSON: ${wrong.message}`), { param: "metadata" });
  }
  return text;
}
