// What the views of webhooks share: the form, the secret that is shown once, and a delivery with its attempts.

import { datetime, duration, number } from "../format.js";
import { badge, button, dialog, empty, facts, form, h, identifier, load, mono, table, time, toast } from "../kit.js";
import { secretDialog } from "./secret.js";

const EVENTS = [
  "memory.created",
  "memory.updated",
  "memory.deleted",
  "memory.tier_changed",
  "document.created",
  "document.processed",
  "document.failed",
  "document.deleted",
  "collection.created",
  "collection.updated",
  "search.completed",
  "user.feedback_received",
  "rl.training_started",
  "rl.training_completed",
  "rl.training_failed",
  "billing.suspended",
  "billing.resumed",
];
const TONES = { pending: "accent", retrying: "warn", delivered: "good", failed: "bad", skipped: "plain" };
const LABELS = { failed: "dead letter" };

export const deliveryBadge = (status) => badge(LABELS[status] ?? status, TONES[status]);
export const attempted = ({ attempt_count }) => number(attempt_count);

const fields = (webhook) => [
  {
    name: "url",
    label: "Address",
    type: "url",
    required: true,
    maxlength: 2048,
    value: webhook?.url,
    placeholder: "https://example.com/hooks/mneme",
    help: "Each event is a POST with a JSON body and a signature.",
  },
  { name: "description", label: "What it is for", maxlength: 1000, value: webhook?.description ?? "" },
  {
    name: "events",
    label: "Events",
    type: "checks",
    options: EVENTS,
    value: webhook?.events ?? ["memory.created", "memory.updated", "memory.deleted"],
  },
];

// -> the new webhook once its secret was shown, or undefined.
export async function create(api) {
  const made = await dialog(
    "New webhook",
    (close) =>
      form(fields(), {
        submit: "Create webhook",
        cancel: () => close(),
        onsubmit: async (values) => close(await api.post("/v1/webhooks", given(values))),
      }),
    { wide: true },
  );
  if (made) await showSecret("Your webhook's signing secret", made.signing_secret);
  return made;
}

// -> the changed webhook, or undefined.
export const edit = (api, webhook) =>
  dialog(
    "Edit the webhook",
    (close) =>
      form(fields(webhook), {
        cancel: () => close(),
        onsubmit: async (values) => close(await api.put(`/v1/webhooks/${webhook.id}`, { ...given(values), status: webhook.status })),
      }),
    { wide: true },
  );

const given = ({ url, description, events }) => ({ url, events, description: description || null });

export async function rotate(api, webhook) {
  const made = await dialog("Rotate the signing secret", (close) =>
    form(
      [
        {
          name: "hours",
          label: "Hours in which the old secret signs as well",
          type: "number",
          min: 0,
          max: 168,
          step: 1,
          value: 24,
          required: true,
          help: "Until then each event has a second signature, so that receivers can be changed without haste.",
        },
      ],
      {
        submit: "Rotate",
        cancel: () => close(),
        onsubmit: async ({ hours }) => close(await api.post(`/v1/webhooks/${webhook.id}/rotate-secret`, { grace_seconds: hours * 3600 })),
      },
    ),
  );
  if (made)
    await showSecret(
      "The new signing secret",
      made.signing_secret,
      `The old one signs as well until ${datetime(made.previous_secret_expires_at)}.`,
    );
  return made;
}

const showSecret = (title, secret, further) =>
  secretDialog(title, secret, {
    copy: "Copy the secret",
    told: ["Copy it now: it is shown this once. Your receiver verifies the header ", mono("X-Webhook-Signature-256"), " with it."],
    further,
  });

// A delivery in a dialog: what was sent, how each attempt ended, and a way to send it again. onchange: after it was replayed.
export function openDelivery(api, webhookId, deliveryId, { onchange }) {
  const path = `/v1/webhooks/${webhookId}/deliveries/${deliveryId}`;
  return dialog(
    "Delivery",
    (close) => {
      const root = h("div", { class: "stack" });
      load(
        root,
        () => api.get(path),
        (delivery) => {
          const replay = async () => {
            await api.post(`${path}/replay`);
            toast("It is sent again.");
            close();
            onchange();
          };
          const over = ["failed", "skipped", "delivered"].includes(delivery.status);
          return [
            facts([
              ["Event", delivery.event_type],
              ["Status", deliveryBadge(delivery.status)],
              ["Happened", time(delivery.created_at, datetime(delivery.created_at))],
              ["Next attempt", delivery.next_attempt_at && time(delivery.next_attempt_at)],
              ["Ended", delivery.finished_at && time(delivery.finished_at, datetime(delivery.finished_at))],
              ["Delivery", identifier(delivery.id)],
            ]),
            h("h3", null, "Attempts"),
            delivery.attempts.length ? attempts(delivery.attempts) : empty("Not tried yet"),
            h("h3", null, "Body"),
            delivery.payload
              ? h("pre", { tabindex: "0" }, JSON.stringify(delivery.payload, null, 2))
              : h("p", { class: "note" }, "It is gone, because what it told of was deleted."),
            over &&
              h(
                "div",
                { class: "row end" },
                button(delivery.status === "delivered" ? "Send it once more" : "Replay", replay, {
                  kind: "primary",
                  disabled: !delivery.payload,
                }),
              ),
          ];
        },
      );
      return root;
    },
    { wide: true },
  );
}

const attempts = (made) =>
  table(
    [
      { label: "At", cell: ({ at }) => time(at, datetime(at)) },
      { label: "Answer", cell: ({ status_code, error }) => badge(status_code ?? "none", error ? "bad" : "good") },
      { label: "Took", kind: "number", cell: ({ duration_ms }) => duration(duration_ms) },
      {
        label: "What was said",
        kind: "wide",
        cell: ({ error, response_body }) =>
          h(
            "div",
            null,
            error && h("div", null, error),
            response_body && h("details", null, h("summary", null, "Answer"), h("pre", { tabindex: "0" }, response_body)),
          ),
      },
    ],
    made,
  );
