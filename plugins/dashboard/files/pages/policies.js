// Outcome policies: everything under which decisions were made.

import { number } from "../format.js";
import { empty, h, link, meter, mono, pageHead, pages, time } from "../kit.js";

export const title = "Outcome policies";

const PAGE_ITEMS = 50;

export async function render(root, { api, signal }) {
  const list = pages({
    signal,
    noun: ["policy", "policies"],
    fetch: (cursor) => api.get("/v1/learning/policies", { cursor, limit: PAGE_ITEMS }, { signal }),
    empty: empty(
      "No policies yet",
      "A policy begins with its first decision: let your application ask which action to take, and report how it went.",
    ),
    columns: [
      { label: "Policy", kind: "wide", cell: ({ policy_key }) => link(`/policy?key=${encodeURIComponent(policy_key)}`, mono(policy_key)) },
      { label: "Decisions", kind: "number", cell: ({ decisions }) => number(decisions) },
      {
        label: "With an outcome",
        cell: ({ decisions, outcomes }) =>
          h(
            "div",
            { class: "share" },
            meter(decisions ? outcomes / decisions : 0, "Share of decisions with an outcome"),
            h("span", { class: "note" }, number(outcomes)),
          ),
      },
      { label: "Version", kind: "number", cell: ({ policy_version }) => number(policy_version) },
      { label: "Last decision", cell: ({ last_decision_at }) => time(last_decision_at) },
      { label: "Begun", cell: ({ created_at }) => time(created_at) },
    ],
  });
  root.append(pageHead("Outcome policies", { subtitle: "Decisions, how they went, and what that says of each action." }), list);
}
