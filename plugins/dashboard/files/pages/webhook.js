// One webhook: what it takes, whether it is well, and everything that was sent to it.

import { number } from "../format.js";
import { badge, button, card, confirm, empty, facts, h, identifier, link, pageHead, pages, replace, tags, time, toast } from "../kit.js";
import { attempted, deliveryBadge, edit, openDelivery, rotate } from "./webhook-parts.js";

export const title = "Webhook";

const STATES = ["pending", "retrying", "delivered", "failed", "skipped"];
const PAGE_ITEMS = 50;
const REFRESH_MS = 2_000;

export async function render(root, { api, route, signal }) {
  const { id } = route.params;
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const show = async () => replace(root, view(await api.get(path, null, { signal })));

  function view(webhook) {
    const active = webhook.status === "active";
    const deliveries = deliveryList(api, id, signal, () => refresh());
    const health = h("div");
    const tell = (now) => replace(health, healthFacts(now));
    // While the view is open, figures and deliveries follow what happens.
    const refresh = async () => {
      tell(await api.get(path, null, { signal }));
      deliveries.reload();
    };
    tell(webhook);
    const turn = async () => {
      await api.put(path, {
        url: webhook.url,
        events: webhook.events,
        description: webhook.description,
        status: active ? "disabled" : "active",
      });
      toast(active ? "Disabled: events are kept as skipped." : "Enabled. What was skipped can be replayed.");
      await show();
    };
    const test = async () => {
      const sent = await api.post(`${path}/test`);
      toast("A test event is on its way.");
      await settled(api, path, sent.delivery_id, signal);
      await refresh();
    };
    const remove = async () => {
      if (!(await confirm("Delete this webhook?", "It delivers nothing any more, and its deliveries and dead letters go with it."))) return;
      await api.delete(path);
      toast("The webhook is deleted.");
      await route.go("/webhooks");
    };
    return [
      h("p", null, link("/webhooks", "← Webhooks")),
      pageHead(webhook.url, {
        subtitle: webhook.description,
        actions: [
          button("Send a test", test, { disabled: !active }),
          button("Edit", async () => (await edit(api, webhook)) && show()),
          button(active ? "Disable" : "Enable", turn),
          button("Rotate secret", async () => (await rotate(api, webhook)) && toast("The secret is rotated.")),
          button("Delete", remove, { kind: "danger" }),
        ],
      }),
      card(null, health, h("div", { class: "stack tight" }, h("span", { class: "note" }, "Events"), h("div", null, tags(webhook.events)))),
      h("div", { class: "stack" }, h("h2", null, "Deliveries"), deliveries),
    ];
  }
  await show();
}

const healthFacts = ({ id, status, disabled_reason, failure_count, last_delivery_at, created_at }) =>
  facts([
    ["Status", badge(status, status === "active" ? "good" : "warn")],
    ["Why", disabled_reason],
    ["Failures since the last success", failure_count ? badge(number(failure_count), "bad") : "0"],
    ["Last delivery", last_delivery_at ? time(last_delivery_at) : "never"],
    ["Created", time(created_at)],
    ["Id", identifier(id)],
  ]);

// Wait until a delivery has had its first attempt, for a few seconds at most.
async function settled(api, path, deliveryId, signal) {
  for (let tries = 0; tries < 3; tries++) {
    const { status } = await api.get(`${path}/deliveries/${deliveryId}`, null, { signal });
    if (status !== "pending") return;
    await new Promise((resolve) => setTimeout(resolve, REFRESH_MS / 4));
  }
}

function deliveryList(api, id, signal, onchange) {
  let status = "";
  const list = pages({
    signal,
    noun: ["delivery", "deliveries"],
    fetch: (cursor) => api.get(`/v1/webhooks/${id}/deliveries`, { status, cursor, limit: PAGE_ITEMS }, { signal }),
    empty: empty("No deliveries", "Send a test, or wait for something to happen."),
    columns: [
      {
        label: "Event",
        kind: "wide",
        cell: (one) =>
          h("button", { type: "button", class: "as-link", onclick: () => openDelivery(api, id, one.id, { onchange }) }, one.event_type),
      },
      { label: "Status", cell: (one) => deliveryBadge(one.status) },
      { label: "Attempts", kind: "number", cell: attempted },
      { label: "Happened", cell: (one) => time(one.created_at) },
      { label: "Next attempt", cell: (one) => time(one.next_attempt_at) },
    ],
  });
  const filter = h(
    "select",
    { "aria-label": "Status of the deliveries", onchange: (event) => ((status = event.target.value), list.reload()) },
    h("option", { value: "" }, "Every status"),
    STATES.map((state) => h("option", { value: state }, state === "failed" ? "dead letter" : state)),
  );
  const made = h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "filters" },
      filter,
      button("Refresh", () => list.reload()),
    ),
    list,
  );
  made.reload = list.reload;
  return made;
}
