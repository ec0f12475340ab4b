// The operator's view: nodes, shards with their slots and how far their logs are behind, and moves. It asks for the operator token, keeps
// it for as long as the view is open, and only looks: orders are given with `mneme admin`.

import { Operator } from "../api.js";
import { bytes, count, duration, number } from "../format.js";
import { badge, button, card, empty, form, h, isAbort, pageHead, replace, stat, table } from "../kit.js";

export const title = "Cluster";

const REPORT = "/v1/internal/cluster";
const REFRESH_MS = 2_000;
const MOVES = { planned: "plain", copying: "accent", erasing: "good", undoing: "warn" };

export function render(root, { signal }) {
  const ask = () =>
    replace(
      root,
      pageHead(title, { subtitle: "For the operator of this installation." }),
      card(
        "Operator token",
        form([{ name: "token", label: "Token", type: "password", required: true, autocomplete: "off", help: WHERE }], {
          submit: "Look",
          onsubmit: async ({ token }) => look(new Operator(token.trim())),
        }),
      ),
    );

  // Raises what the first look is refused with; later ones say so and go on.
  async function look(operator) {
    const first = await operator.get(REPORT, { signal });
    const shown = h("div", { class: "stack" });
    const told = h("span", { class: "note", role: "status" });
    replace(root, pageHead(title, { actions: [told, button("Forget the token", ask, { kind: "quiet" })] }), shown);
    replace(shown, report(first));
    while (shown.isConnected && !signal.aborted) {
      await new Promise((over) => setTimeout(over, REFRESH_MS));
      if (!shown.isConnected || signal.aborted) return;
      try {
        replace(shown, report(await operator.get(REPORT, { signal })));
        replace(told);
      } catch (error) {
        if (isAbort(error)) return;
        replace(told, `${error.message} What is shown is older.`);
      }
    }
  }

  ask();
}

const WHERE = "MNEME_SECRETS__OPERATOR_TOKEN of the service, or secrets/operator_token of its data directory.";

function report({ version, shards, moves, finished, failures, nodes = [], gone = [], unfit = [], restorations = [] }) {
  const behind = shards.map((shard) => shard.log_behind_seconds).filter((seconds) => seconds != null);
  return [
    h(
      "div",
      { class: "grid stats" },
      stat("Shards open", `${number(shards.filter(({ open }) => open).length)} of ${number(shards.length)}`),
      stat("Log behind", behind.length ? duration(1_000 * Math.max(...behind)) : "–", behind.length ? "the farthest" : "no object store"),
      stat("Moves", number(moves.length), `${number(finished)} finished since the supervisor began`),
      stat("Placement", number(version), "its version"),
    ),
    card("Nodes", table(NODE_COLUMNS, nodesOf({ shards, nodes, gone, unfit }))),
    card("Shards", table(SHARD_COLUMNS, shards)),
    card("Moves", moves.length ? table(MOVE_COLUMNS, moves) : empty("No slot is on its way")),
    restorations.length > 0 && card("Shards of lost nodes", table(RESTORATION_COLUMNS, restorations)),
    failures.length > 0 && card("Moves that came to nothing", table(FAILURE_COLUMNS, failures)),
  ];
}

// Nodes that have shards, that are there, or that are not: {name, state: [text, tone], why, shards, slots, bytes}.
function nodesOf({ shards, nodes, gone, unfit }) {
  const away = new Map(gone.map(({ node, seconds }) => [node, seconds]));
  const problems = new Map(unfit.map(({ node, problem }) => [node, problem]));
  const names = new Set([...shards.map(({ node }) => node), ...nodes, ...away.keys(), ...problems.keys()]);
  return [...names].sort().map((name) => {
    const own = shards.filter(({ node }) => node === name);
    const total = (field) => own.reduce((sum, shard) => sum + shard[field], 0);
    const state = away.has(name)
      ? [`gone for ${duration(1_000 * away.get(name))}`, "bad"]
      : problems.has(name)
        ? ["gets no shard", "bad"]
        : ["there", "good"];
    return { name, state, why: problems.get(name), shards: own.length, slots: total("slots"), bytes: total("bytes") };
  });
}

const shardState = ({ open, draining }) => (!open ? badge("silent", "bad") : draining ? badge("draining", "accent") : badge("open", "good"));
const place = (node) => node || "this machine";

const NODE_COLUMNS = [
  { label: "Node", cell: ({ name }) => place(name) },
  { label: "State", cell: ({ state, why }) => [badge(...state), why && h("p", { class: "note" }, why)] },
  { label: "Shards", kind: "number", cell: ({ shards }) => number(shards) },
  { label: "Slots", kind: "number", cell: ({ slots }) => number(slots) },
  { label: "On disk", kind: "number", cell: (node) => bytes(node.bytes) },
];
const SHARD_COLUMNS = [
  { label: "Shard", cell: ({ shard }) => number(shard) },
  { label: "Node", cell: ({ node }) => place(node) },
  { label: "State", cell: shardState },
  { label: "Slots", kind: "number", cell: ({ slots }) => number(slots) },
  { label: "On disk", kind: "number", cell: (shard) => bytes(shard.bytes) },
  { label: "Last commit", kind: "number", cell: ({ sequence }) => number(sequence) },
  { label: "Log behind", kind: "number", cell: (shard) => (shard.log_behind_seconds == null ? "–" : duration(1_000 * shard.log_behind_seconds)) },
  { label: "Jobs", kind: "number", cell: (shard) => number(shard.jobs_waiting) },
];
const MOVE_COLUMNS = [
  { label: "Move", cell: ({ id }) => h("code", null, id) },
  { label: "What", cell: ({ slots }) => count(slots, "slot") },
  { label: "From", kind: "number", cell: ({ source }) => number(source) },
  { label: "To", kind: "number", cell: ({ target }) => number(target) },
  { label: "State", cell: ({ state }) => badge(state, MOVES[state]) },
  { label: "Attempts", kind: "number", cell: ({ attempts }) => number(attempts) },
];
const RESTORATION_COLUMNS = [
  { label: "Shard", cell: ({ shard }) => number(shard) },
  { label: "From", cell: ({ source }) => place(source) },
  { label: "To", cell: ({ target }) => place(target) },
  { label: "State", cell: ({ done }) => (done ? badge("answers", "good") : badge("is restored", "accent")) },
  { label: "Took", kind: "number", cell: ({ seconds }) => duration(1_000 * seconds) },
  { label: "Behind at most", kind: "number", cell: (one) => (one.behind_seconds_max == null ? "–" : duration(1_000 * one.behind_seconds_max)) },
];
const FAILURE_COLUMNS = [
  { label: "Move", cell: ({ id }) => h("code", null, id) },
  { label: "Why", kind: "wide", cell: ({ reason }) => reason },
  { label: "Tried again", cell: ({ final }) => (final ? "no" : "yes") },
];
