// The dialog that edits a memory. Only what was changed in it is sent; and where the memory has changed meanwhile, both are to be seen.

import { number } from "../format.js";
import { fieldText } from "../json-text.js";
import { button, dialog, facts, form, h, replace, tags } from "../kit.js";
import { changedMemory, memoryFields } from "./memory-parts.js";

const PRECONDITION_FAILED = 412;

// read: the memory as `api.get(path, null, {whole: true})` has it. -> whether it was changed.
export function editing(api, path, read) {
  let version = read.headers.get("ETag");
  const newer = h("div", { class: "stack tight", role: "status" });
  const body = (close) => {
    const save = async (values, made) => {
      const changed = made.changed();
      if (!Object.keys(changed).length) return close(false);
      const headers = version ? { "If-Match": version } : {};
      try {
        await api.call("PATCH", path, { text: changedMemory(changed), headers });
      } catch (error) {
        if (error.status === PRECONDITION_FAILED) await showNewer(made);
        throw error;
      }
      close(true);
    };
    // What was typed stays; what there is now stands beside it.
    const showNewer = async (made) => {
      const now = await api.get(path, null, { whole: true });
      const over = () => {
        version = now.headers.get("ETag");
        made.requestSubmit();
      };
      const begun = () => {
        replace(newer);
        version = now.headers.get("ETag");
        const fresh = formOf(now);
        made.replaceWith(fresh);
        fresh.querySelector("textarea").focus();
      };
      replace(
        newer,
        h("h3", null, `As it is now, version ${number(now.body.version)}`),
        h("blockquote", { class: "text" }, now.body.content),
        facts([
          ["Title", now.body.title],
          ["Tags", now.body.tags.length > 0 && tags(now.body.tags)],
          ["Importance", String(now.body.importance)],
        ]),
        h("p", { class: "note" }, "Saving over it changes only what you have changed here."),
        h("div", { class: "row" }, button("Save mine over it", over), button("Begin with the newer text", begun)),
      );
    };
    const formOf = ({ body: memory, text }) =>
      form(memoryFields(memory, [], fieldText(text, "metadata")), { submit: "Save", cancel: () => close(false), onsubmit: save });
    return h("div", { class: "stack" }, formOf(read), newer);
  };
  return dialog("Edit memory", body, { wide: true });
}
