// API keys: what opens the account from elsewhere. A key's text is shown once, where it is made.

import { compact, count } from "../format.js";
import { badge, button, confirm, dialog, form, h, mono, pageHead, pages, time, toast } from "../kit.js";
import { secretDialog } from "./secret.js";

export const title = "API keys";

const SCOPES = [
  ["read", "read: search and look"],
  ["write", "write: store and change as well"],
  ["admin", "admin: keys, billing, export and erasure as well"],
];

export async function render(root, { api, signal }) {
  const list = pages({
    signal,
    noun: ["API key", "API keys"],
    fetch: (cursor) => api.get("/v1/auth/api-keys", { cursor, limit: 50 }, { signal }),
    columns: [
      {
        label: "Name",
        kind: "wide",
        cell: (key) => h("div", null, h("strong", null, key.name), h("div", { class: "note" }, mono(key.prefix + "…"))),
      },
      { label: "Scopes", cell: (key) => key.scopes.map((scope) => [badge(scope, scope === "admin" ? "warn" : "plain"), " "]) },
      { label: "Created", cell: (key) => time(key.created_at) },
      { label: "Last used", cell: (key) => (key.last_used_at ? time(key.last_used_at) : h("span", { class: "note" }, "never")) },
      { label: "Requests", kind: "number", cell: (key) => compact(key.usage.requests) },
      { label: "Credits", kind: "number", cell: (key) => compact(key.usage.credits) },
      { label: "Expires", cell: (key) => (key.expires_at ? time(key.expires_at) : "never") },
      {
        label: "",
        kind: "actions",
        cell: (key) => button("Delete", () => remove(key), { kind: "danger small", "aria-label": `Delete ${key.name}` }),
      },
    ],
  });

  async function remove(key) {
    const used = key.last_used_at ? ` It made ${count(key.usage.requests, "request")}.` : "";
    if (!(await confirm("Delete this API key?", `Whatever uses “${key.name}” is refused from the next request on.${used}`))) return;
    await api.delete(`/v1/auth/api-keys/${key.id}`);
    toast(`“${key.name}” is deleted.`);
    list.reload();
  }

  const create = async () => {
    const made = await dialog("New API key", (close) =>
      form(
        [
          { name: "name", label: "Name", required: true, maxlength: 255, placeholder: "production", help: "What it is for." },
          { name: "scopes", label: "What it may do", type: "checks", options: SCOPES, value: ["read", "write"] },
          { name: "expires_at", label: "Expires", type: "datetime-local", help: "Leave it empty for a key that does not expire." },
        ],
        {
          submit: "Create key",
          cancel: () => close(null),
          onsubmit: async ({ name, scopes, expires_at }) =>
            close(
              await api.post("/v1/auth/api-keys", { name, scopes, ...(expires_at && { expires_at: new Date(expires_at).toISOString() }) }),
            ),
        },
      ),
    );
    if (!made) return;
    list.reload();
    await secretDialog("Your new API key", made.key, {
      copy: "Copy the key",
      told: "Copy it now. It is shown this once, and nobody can look it up later.",
    });
  };

  root.append(
    pageHead("API keys", {
      subtitle: "Each application should have a key of its own, with no more scope than it needs.",
      actions: [button("New key", create, { kind: "primary" })],
    }),
    list,
  );
}
