// JSON as it was written. A number of JavaScript's keeps no 64-bit integer and takes 1.0 for 1, so what is only passed on stays text.

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const INDENT = "  ";

// The text of a field of an object's text; undefined where there is none. The text is JSON.
export function fieldText(text, wanted) {
  const tokens = text.match(TOKENS);
  let depth = 0;
  for (let at = 0; at < tokens.length; at++) {
    if (depth === 1 && tokens[at + 1] === ":" && JSON.parse(tokens[at]) === wanted) return valueFrom(tokens, at + 2);
    depth += step(tokens[at]);
  }
  return undefined;
}

// The same, a field on each line.
export function indented(text) {
  let depth = 0;
  let made = "";
  const tokens = text.match(TOKENS) ?? [];
  tokens.forEach((token, at) => {
    const empty = step(tokens[at - 1]) === 1 && step(token) === -1;
    if (step(token) === -1) depth -= 1;
    const fresh = !empty && (step(token) === -1 || step(tokens[at - 1]) === 1 || tokens[at - 1] === ",");
    if (fresh && at) made += "\n" + INDENT.repeat(depth);
    made += token === ":" ? ": " : token;
    if (step(token) === 1) depth += 1;
  });
  return made;
}

// An object's text, from a name -> the text of its value.
export const objectText = (fields) =>
  `{${Object.entries(fields)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(",")}}`;

const step = (token) => (token === "{" || token === "[" ? 1 : token === "}" || token === "]" ? -1 : 0);

function valueFrom(tokens, start) {
  let [depth, at] = [0, start];
  do depth += step(tokens[at++]);
  while (depth > 0);
  return tokens.slice(start, at).join("");
}
