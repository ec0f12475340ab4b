// Webhooks: where the account is told what happens, and what could not be delivered.

import { ago, count, number } from "../format.js";
import { badge, button, confirm, empty, h, link, pageHead, pages, tabs, time, toast } from "../kit.js";
import { attempted, create, openDelivery } from "./webhook-parts.js";

export const title = "Webhooks";

const PAGE_ITEMS = 50;

export async function render(root, { api, route, signal }) {
  const made = async () => {
    const webhook = await create(api);
    if (webhook) await route.go(`/webhooks/${webhook.id}`);
  };
  const list = () =>
    pages({
      signal,
      noun: ["webhook", "webhooks"],
      fetch: (cursor) => api.get("/v1/webhooks", { cursor, limit: PAGE_ITEMS }, { signal }),
      empty: empty(
        "No webhooks yet",
        "A webhook is an address of yours that is told when memories, documents and collections change.",
        button("New webhook", made, { kind: "primary" }),
      ),
      columns: [
        {
          label: "Webhook",
          kind: "wide",
          cell: ({ id, url, description }) =>
            h("div", null, link(`/webhooks/${id}`, url), description && h("div", { class: "note" }, description)),
        },
        {
          label: "Status",
          cell: ({ status, disabled_reason }) =>
            h("span", { title: disabled_reason }, badge(status, status === "active" ? "good" : "warn")),
        },
        { label: "Events", kind: "number", cell: ({ events }) => h("span", { title: events.join(", ") }, number(events.length)) },
        { label: "Failures", kind: "number", cell: ({ failure_count }) => (failure_count ? badge(number(failure_count), "bad") : "0") },
        {
          label: "Last delivery",
          cell: ({ last_delivery_at }) => (last_delivery_at ? time(last_delivery_at) : h("span", { class: "note" }, "never")),
        },
      ],
    });
  const views = tabs(
    [
      ["Webhooks", list],
      ["Dead letters", () => deadLetters(api, signal)],
    ],
    route.query.get("view") === "dead-letters" ? 1 : 0,
  );
  root.append(
    pageHead("Webhooks", {
      subtitle: "Signed events, sent to addresses of yours, tried five times and kept if they fail.",
      actions: [button("New webhook", made, { kind: "primary" })],
    }),
    views,
  );
}

function deadLetters(api, signal) {
  const chosen = new Set();
  const replayChosen = button(
    "Replay the chosen ones",
    async () => chosen.size && tell(await api.post("/v1/webhooks/dead-letters/replay", { ids: [...chosen] })),
    { disabled: true },
  );
  const choose = (id) => (event) => {
    event.target.checked ? chosen.add(id) : chosen.delete(id);
    replayChosen.disabled = !chosen.size;
  };
  const list = pages({
    signal,
    noun: ["dead letter", "dead letters"],
    fetch: (cursor) => api.get("/v1/webhooks/dead-letters", { cursor, limit: PAGE_ITEMS }, { signal }),
    empty: empty("No dead letters", "Everything was delivered, or is still being tried. What fails five times is kept here for 30 days."),
    columns: [
      {
        label: "",
        cell: ({ id, event_type }) =>
          h("input", { type: "checkbox", "aria-label": `Choose the ${event_type} of ${id}`, onchange: choose(id) }),
      },
      {
        label: "Event",
        kind: "wide",
        cell: (letter) =>
          h(
            "button",
            { type: "button", class: "as-link", onclick: () => openDelivery(api, letter.webhook_id, letter.id, { onchange: again }) },
            letter.event_type,
          ),
      },
      { label: "Webhook", cell: ({ webhook_id }) => link(`/webhooks/${webhook_id}`, "open") },
      { label: "Attempts", kind: "number", cell: attempted },
      { label: "Happened", cell: ({ created_at }) => time(created_at) },
      { label: "Given up", cell: ({ finished_at }) => time(finished_at) },
      {
        label: "",
        kind: "actions",
        cell: (letter) =>
          button(
            "Replay",
            async () => (
              await api.post(`/v1/webhooks/${letter.webhook_id}/deliveries/${letter.id}/replay`),
              toast("It is sent again."),
              again()
            ),
            { kind: "small" },
          ),
      },
    ],
  });
  const again = () => {
    chosen.clear();
    list.reload();
  };
  const tell = ({ replayed, has_more, results }) => {
    const others = results.filter(({ status }) => status !== "replayed").length;
    const rest = has_more ? " There are more in this range: replay it once more." : "";
    toast(
      `${count(replayed, "delivery is", "deliveries are")} sent again.${others ? ` ${number(others)} could not be: the webhook is disabled, or what it tells of was deleted.` : ""}${rest}`,
      { tone: others ? "bad" : "" },
    );
    again();
  };
  return h("div", { class: "stack" }, rangeForm(api, tell), h("div", { class: "row" }, replayChosen), list);
}

// Replay everything of a range of time, after saying what that is.
function rangeForm(api, tell) {
  const since = h("input", { type: "datetime-local", id: "replay-since" });
  const until = h("input", { type: "datetime-local", id: "replay-until" });
  const skipped = h("input", { type: "checkbox", id: "replay-skipped" });
  const replay = async () => {
    if (!since.value && !until.value) return toast("Say since when, or until when.", { tone: "bad" });
    const [from, to] = [since, until].map(({ value }) => (value ? new Date(value).toISOString() : undefined));
    const span = [from && `from ${ago(from)}`, to && `until ${ago(to)}`].filter(Boolean).join(" ");
    if (
      !(await confirm(
        "Replay a range?",
        `Every dead letter of events ${span} is sent again${skipped.checked ? ", and what was skipped while a webhook was disabled" : ""}.`,
        { label: "Replay", kind: "primary" },
      ))
    )
      return;
    tell(await api.post("/v1/webhooks/dead-letters/replay", { since: from, until: to, include_skipped: skipped.checked }));
  };
  return h(
    "form",
    { class: "inline replay", onsubmit: (event) => event.preventDefault() },
    h("div", { class: "field" }, h("label", { for: "replay-since" }, "Events since"), since),
    h("div", { class: "field" }, h("label", { for: "replay-until" }, "Events until"), until),
    h("label", { class: "check" }, skipped, h("span", null, "Skipped ones too")),
    button("Replay the range", replay),
  );
}
