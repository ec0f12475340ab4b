// Collections: shelves that keep memories and documents apart.

import { count, number } from "../format.js";
import { badge, button, confirm, dialog, empty, form, h, link, pageHead, pages, time, toast } from "../kit.js";

export const title = "Collections";

export async function render(root, { api, route, signal }) {
  const asked = route.query.get("name_prefix") ?? "";
  const list = pages({
    signal,
    noun: ["collection", "collections"],
    empty: empty("No collection matches", "Names are compared from their beginning, letter case included."),
    fetch: (cursor) => api.get("/v1/collections", { cursor, name_prefix: route.query.get("name_prefix"), limit: 50 }, { signal }),
    columns: [
      {
        label: "Name",
        kind: "wide",
        cell: (one) =>
          h(
            "div",
            null,
            link(`/memories?collection_id=${one.id}`, one.name),
            one.is_default && [" ", badge("default", "accent")],
            one.description && h("div", { class: "note" }, one.description),
          ),
      },
      { label: "Memories", kind: "number", cell: (one) => number(one.memory_count) },
      {
        label: "Documents",
        kind: "number",
        cell: (one) => (one.document_count ? link(`/documents?collection_id=${one.id}`, number(one.document_count)) : "0"),
      },
      { label: "Created", cell: (one) => time(one.created_at) },
      {
        label: "",
        kind: "actions",
        cell: (one) =>
          h(
            "div",
            { class: "row end nowrap" },
            button("Edit", () => edit(one), { kind: "small", "aria-label": `Edit ${one.name}` }),
            !one.is_default && button("Delete", () => remove(one), { kind: "danger small", "aria-label": `Delete ${one.name}` }),
          ),
      },
    ],
  });
  const fields = (one = {}) => [
    { name: "name", label: "Name", required: true, maxlength: 255, value: one.name },
    { name: "description", label: "Description", type: "textarea", rows: 2, maxlength: 2000, value: one.description ?? "" },
  ];
  const write = async (heading, one, send) => {
    const saved = await dialog(heading, (close) =>
      form(fields(one), {
        submit: "Save",
        cancel: () => close(),
        onsubmit: async ({ name, description }) => close(await send({ name, description: description || null })),
      }),
    );
    if (saved) list.reload();
  };
  const edit = (one) => write("Edit collection", one, (body) => api.patch(`/v1/collections/${one.id}`, body));
  const remove = async (one) => {
    const inside = [
      one.memory_count && count(one.memory_count, "memory", "memories"),
      one.document_count && count(one.document_count, "document"),
    ]
      .filter(Boolean)
      .join(" and ");
    const typed = inside ? one.name.trim() : undefined;
    if (
      !(await confirm("Delete this collection?", inside ? `It goes with ${inside}, and cannot be brought back.` : "It is empty.", {
        typed,
      }))
    )
      return;
    await api.delete(`/v1/collections/${one.id}`);
    toast(`“${one.name}” is deleted.`);
    list.reload();
  };
  const narrow = form([{ name: "name_prefix", label: "Name begins with", type: "search", value: asked }], {
    submit: "Filter",
    inline: true,
    kind: "",
    onsubmit: async (values) => (route.note(values), route.query.set("name_prefix", values.name_prefix), list.reload()),
  });
  root.append(
    pageHead("Collections", {
      subtitle: "Shelves that keep memories and documents apart: by team, by customer, by project.",
      actions: [
        button("New collection", () => write("New collection", {}, (body) => api.post("/v1/collections", body)), { kind: "primary" }),
      ],
    }),
    narrow,
    list,
  );
}
