// Why a result stands where it does: its matching words marked, and what each feature added to its score or took from it.

import { decimal } from "../format.js";
import { h, mono } from "../kit.js";

const SAYS = {
  words: "how near it comes to each word of the query",
  nearby: "how near it or a neighbour in the session comes to each word",
  lexical: "words it shares with the query, its neighbours' too",
  semantic: "nearness in meaning, its neighbours' too",
  exact: "nearness in meaning of the memory alone",
  session: "the best memory of the same session",
  answer: "how well the question before it matches",
  speaker: "whether the query names its speaker, or another",
  personal: "whether it speaks in the first person of whom the query names",
  date: "how near it happened to a time that the query names",
  time: "it says when, and the query asks when",
  number: "it has a number, and the query asks how many",
  place: "it has names, and the query asks where",
  length: "how much it says",
  question: "it asks more than it tells",
  address: "it speaks to somebody more than it tells",
  names: "it has names",
  dated: "it says when",
};
const SHOWN_AT_LEAST = 0.0005;

// Contributions, the weightiest first, as bars to the right (for) and to the left (against).
export function explanation({ explanation: parts, score }, profile) {
  const weighty = Object.entries(parts)
    .filter(([, value]) => Math.abs(value) >= SHOWN_AT_LEAST)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  const most = Math.max(...weighty.map(([, value]) => Math.abs(value)), SHOWN_AT_LEAST);
  return h(
    "div",
    { class: "stack tight" },
    h(
      "table",
      { class: "features", "aria-label": "What each feature contributed" },
      h(
        "tbody",
        null,
        weighty.map((part) => feature(part, most)),
      ),
    ),
    h(
      "p",
      { class: "note" },
      `Together ${decimal(score, 3)}. It ranks, and is no probability.`,
      profile && [" Weights: ", mono(profile), " in the configuration."],
    ),
  );
}

function feature([name, value], most) {
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, name.replaceAll("_", " "), h("span", { class: "note" }, SAYS[name])),
    h(
      "td",
      { class: "bar-cell" },
      h("span", { class: `bar ${value < 0 ? "against" : "for"}`, css: { "--share": Math.abs(value) / most } }),
    ),
    h("td", { class: "number" }, (value < 0 ? "−" : "+") + decimal(Math.abs(value), 3)),
  );
}

// Places count code points, as the service does; JavaScript's strings count something else.
export function highlighted(content, spans) {
  const characters = Array.from(content);
  const parts = [];
  let at = 0;
  for (const { start, end } of spans ?? []) {
    parts.push(characters.slice(at, start).join(""), h("mark", null, characters.slice(start, end).join("")));
    at = end;
  }
  return [...parts, characters.slice(at).join("")];
}

// Tokens of a text as the service estimates them: four ASCII characters, or one other.
export function estimatedTokens(text) {
  const characters = Array.from(text);
  const ascii = characters.filter((one) => one < "\x80").length;
  return Math.ceil(ascii / 4) + characters.length - ascii;
}
