// One policy: what is believed of each action, drawn, and whether the evidence suffices to change to another one.

import { count, decimal, number, percent } from "../format.js";
import { badge, card, empty, facts, form, h, load, mono, pageHead, replace, stat, svg, table } from "../kit.js";
import { curve, spanOf } from "./posteriors.js";

export const title = "Outcome policy";

const WIDTH = 400;
const HEIGHT = 76;
const VERDICTS = {
  sufficient: ["good", "The evidence suffices: the target is better."],
  insufficient: ["warn", "The evidence does not suffice yet."],
  harmful: ["bad", "The target is worse, or harms what it must not."],
  invalid: ["bad", "Nothing follows from these decisions."],
};

export async function render(root, { api, route, signal }) {
  const key = route.query.get("key");
  if (!key) return route.go("/policies", { replaced: true });
  const path = `/v1/learning/policies/${encodeURIComponent(key)}`;
  root.append(pageHead(key, { subtitle: "What the outcomes so far say of each action. It informs a choice, and permits none." }));
  const body = h("div", { class: "stack" });
  root.append(body);
  await load(
    body,
    () => api.get(`${path}/insights`, null, { signal }),
    (insights) => view(insights, (asked) => api.post(`${path}/evaluate`, asked, { signal })),
    { signal },
  );
}

function view(insights, evaluate) {
  const { actions, action_count, policy_version, missingness, overlap, max_weight, worst_case_bounds: worst } = insights;
  if (!actions.length) return empty("No decisions are left", "They were deleted with the collection they belonged to.");
  const decisions = actions.reduce((sum, action) => sum + action.count, 0);
  const best = actions.reduce((one, other) => (other.probability_best > one.probability_best ? other : one));
  return [
    h(
      "div",
      { class: "grid stats" },
      stat("Decisions", number(decisions), `${percent(missingness)} have no outcome yet`),
      stat("Most likely the best", best.action_key, `with a probability of ${percent(best.probability_best)}`),
      stat("Mean reward", `${decimal(worst.lower)} – ${decimal(worst.upper)}`, "at worst and best, whatever the missing outcomes are"),
      stat("Overlap", percent(overlap), `largest weight ${decimal(max_weight, 1)}; version ${number(policy_version)}`),
    ),
    card(
      "What is believed of each action",
      h(
        "p",
        { class: "note" },
        "The curve is the posterior of the action's mean reward; the dark part holds it with 90 % probability, the line is its mean.",
        action_count > actions.length &&
          ` The ${number(actions.length)} of ${number(action_count)} actions that were taken most often are shown.`,
      ),
      posteriors(actions),
    ),
    card("Figures", estimates(actions)),
    card("Does the evidence suffice?", judgement(actions, evaluate)),
  ];
}

// --- posteriors -------------------------------------------------------------------------------------------------------

function posteriors(actions) {
  const [low, high] = spanOf(actions.map(({ posterior }) => posterior));
  const digits = high - low < 0.1 ? 3 : 2;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => decimal(low + share * (high - low), digits));
  const likeliest = [...actions].sort((one, other) => other.probability_best - one.probability_best);
  return h(
    "div",
    null,
    likeliest.map((action) => posteriorRow(action, low, high)),
    h(
      "div",
      { class: "scale", "aria-hidden": "true" },
      h(
        "div",
        null,
        marks.map((mark) => h("span", null, mark)),
      ),
    ),
  );
}

function posteriorRow({ action_key, count: taken, outcomes, posterior, probability_best }, low, high) {
  const [from, to] = posterior.credible_interval_90;
  const x = (value) => ((WIDTH * (value - low)) / (high - low)).toFixed(2);
  const line = curve(posterior.distribution, low, high).map(([value, height]) => [
    x(value),
    (HEIGHT - 4 - (HEIGHT - 10) * height).toFixed(2),
    value,
  ]);
  const area = (part) =>
    part.length ? `M${part[0][0]} ${HEIGHT - 4}L${part.map(([at, top]) => `${at} ${top}`).join("L")}L${part.at(-1)[0]} ${HEIGHT - 4}Z` : "";
  const said = `${action_key}: mean ${decimal(posterior.mean, 3)}, with 90 % probability between ${decimal(from, 3)} and ${decimal(to, 3)}; the best with ${percent(probability_best)}`;
  return h(
    "div",
    { class: "posterior" },
    h("div", null, h("strong", null, action_key), h("p", { class: "note" }, `${count(taken, "decision")}, ${count(outcomes, "outcome")}`)),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": said },
      svg("path", { class: "density", d: area(line) }),
      svg("path", { class: "interval", d: area(line.filter(([, , value]) => value >= from && value <= to)) }),
      svg("path", { class: "ground", d: `M0 ${HEIGHT - 4}H${WIDTH}` }),
      svg("path", { class: "mean", d: `M${x(posterior.mean)} 6V${HEIGHT - 4}` }),
    ),
    h(
      "div",
      { class: "figures" },
      h("div", null, h("strong", null, decimal(posterior.mean, 3))),
      h("p", { class: "note" }, `${decimal(from, 3)} – ${decimal(to, 3)}`),
      h("p", { class: "note" }, `best: ${percent(probability_best)}`),
    ),
  );
}

const estimates = (actions) =>
  table(
    [
      { label: "Action", cell: ({ action_key }) => h("span", { class: "nowrap" }, mono(action_key)) },
      { label: "Taken", kind: "number", cell: (action) => number(action.count) },
      { label: "Outcomes", kind: "number", cell: ({ outcomes }) => number(outcomes) },
      { label: "None yet", kind: "number", cell: ({ censored }) => number(censored) },
      { label: "Effective sample", kind: "number", cell: ({ effective_sample_size }) => decimal(effective_sample_size, 1) },
      ...[
        ["IPS", "ips"],
        ["Clipped IPS", "clipped_ips"],
        ["SNIPS", "snips"],
        ["Doubly robust", "dr"],
      ].map(([label, name]) => ({ label, kind: "number", cell: ({ estimators }) => decimal(estimators[name], 3) })),
    ],
    actions,
  );

// --- evaluation -------------------------------------------------------------------------------------------------------

function judgement(actions, evaluate) {
  const keys = actions.map(({ action_key }) => [`=${action_key}`, action_key]);
  const result = h("div", { "aria-live": "polite" });
  const asked = form(
    [
      { name: "target", label: "Change to", type: "select", options: [["", "the recommended"], ...keys] },
      { name: "baseline", label: "Instead of", type: "select", options: [["", "what was done"], ...keys] },
      { name: "margin", label: "Better by at least", type: "number", step: "any", value: 0, required: true },
      { name: "alpha", label: "Chance of a false yes", type: "number", min: 0.0001, max: 0.5, step: "any", value: 0.05, required: true },
    ],
    {
      submit: "Evaluate",
      inline: true,
      onsubmit: async ({ target, baseline, margin, alpha }) =>
        replace(
          result,
          verdict(
            await evaluate({
              target: target ? { action_key: target.slice(1) } : "recommended",
              ...(baseline && { baseline: baseline.slice(1) }),
              margin,
              alpha,
            }),
            margin,
          ),
        ),
    },
  );
  return [
    h("p", { class: "note" }, "The bounds hold however often you look, and whenever you stop. An evaluation costs 2 credits."),
    asked,
    result,
  ];
}

function verdict({ verdict: word, lower_bound, upper_bound, estimate, n, effective_sample_size, reasons }, margin) {
  const [tone, said] = VERDICTS[word];
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "row" }, badge(word, tone), h("strong", null, said)),
    word !== "invalid" && bounds(lower_bound, upper_bound, estimate, margin),
    facts([
      ["Difference of mean reward", estimate == null ? "–" : decimal(estimate, 3)],
      ["At least, at most", `${decimal(lower_bound, 3)}, ${decimal(upper_bound, 3)}`],
      ["Decisions looked at", number(n)],
      ["Effective sample", decimal(effective_sample_size, 1)],
    ]),
    h(
      "ul",
      { class: "stack tight" },
      reasons.map((reason) => h("li", { class: "note" }, reason)),
    ),
  );
}

// The interval of the difference, against no difference and the margin that was asked for.
function bounds(lower, upper, estimate, margin) {
  const reach = Math.max(Math.abs(lower), Math.abs(upper), Math.abs(margin)) * 1.05 || 1;
  const x = (value) => ((WIDTH * (value + reach)) / (2 * reach)).toFixed(2);
  return h(
    "div",
    { class: "bounds" },
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} 40`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `The difference lies between ${decimal(lower, 3)} and ${decimal(upper, 3)}`,
      },
      svg("path", { class: "ground", d: `M0 20H${WIDTH}` }),
      svg("path", { class: "span", d: `M${x(lower)} 20H${x(upper)}` }),
      svg("path", { class: "zero", d: `M${x(0)} 4V36` }),
      margin !== 0 && svg("path", { class: "margin", d: `M${x(margin)} 4V36` }),
      estimate != null && svg("path", { class: "zero", d: `M${x(estimate)} 14V26` }),
    ),
    h(
      "div",
      { class: "row between note", "aria-hidden": "true" },
      h("span", null, decimal(-reach, 2)),
      h("span", null, "0: no difference"),
      h("span", null, decimal(reach, 2)),
    ),
  );
}
