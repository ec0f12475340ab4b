// One of the graph's two clocks: a slider over the time that the graph speaks of, with a mark wherever something changes.

import { date, datetime } from "../format.js";
import { button, h, newId, replace, svg } from "../kit.js";

const STEPS = 1_000;
const DAY_MS = 86_400_000;
const REST_MS = 250; // what is asked for waits until the slider has rested for so long
const MARKS_MAX = 400;

// onchange gets the chosen instant in milliseconds, or null for now. The element has .span(instants), .choose(ms or null) and .chosen.
export function clock({ label, help, onchange }) {
  const id = newId("clock");
  const slider = h("input", { type: "range", id, min: 0, max: STEPS, step: 1, value: STEPS, "aria-describedby": `${id}-help` });
  const told = h("output", { for: id, class: "clock-time" }, "now");
  const strip = svg("svg", { class: "clock-marks", viewBox: `0 0 ${STEPS} 8`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const ends = h("div", { class: "clock-ends note" });
  const exact = h("input", { type: "datetime-local", "aria-label": `${label}, exactly` });
  let [low, high, marks, timer] = [Date.now() - DAY_MS, Date.now(), [], 0];

  const say = () => {
    const text = made.chosen == null ? "now" : high - low < 3 * DAY_MS ? datetime(made.chosen) : date(made.chosen);
    replace(told, text);
    slider.setAttribute("aria-valuetext", text);
    exact.value = made.chosen == null ? "" : local(made.chosen);
  };
  const place = () => (slider.value = STEPS * Math.min(1, Math.max(0, ((made.chosen ?? Date.now()) - low) / (high - low))));
  const announce = (ms) => (clearTimeout(timer), (timer = setTimeout(() => onchange(made.chosen), ms)));
  const choose = (ms, wait = 0) => {
    made.chosen = ms;
    place();
    say();
    announce(wait);
  };
  const step = (direction) => {
    const from = made.chosen ?? Date.now();
    const next = direction > 0 ? marks.find((mark) => mark > from) : marks.findLast((mark) => mark < from);
    if (next != null) choose(next);
    else if (direction > 0) choose(null);
  };
  const stepper = (sign, name, direction) =>
    button(sign, () => step(direction), { kind: "small", title: name, "aria-label": `${name}: ${label.toLowerCase()}` });
  slider.addEventListener("input", () => {
    const ms = Math.round(low + ((high - low) * slider.value) / STEPS);
    made.chosen = Math.abs(ms - Date.now()) <= (high - low) / STEPS ? null : ms;
    say();
    announce(REST_MS);
  });
  exact.addEventListener("change", () => choose(exact.value ? new Date(exact.value).getTime() : null));

  const made = h(
    "div",
    { class: "clock" },
    h("div", { class: "row between" }, h("label", { for: id }, label), told),
    h("div", { class: "clock-slider" }, strip, slider),
    ends,
    h(
      "div",
      { class: "row clock-tools" },
      stepper("‹", "Earlier change", -1),
      stepper("›", "Later change", 1),
      button("Now", () => choose(null), { kind: "small" }),
      exact,
    ),
    h("p", { class: "note", id: `${id}-help` }, help),
  );
  made.chosen = null;
  made.choose = choose;
  made.span = (instants) => {
    marks = [...new Set(instants)].sort((a, b) => a - b);
    const now = Date.now();
    const [first, last] = [Math.min(marks[0] ?? now - DAY_MS, now - DAY_MS / 24), Math.max(marks.at(-1) ?? now, now)];
    const margin = Math.max((last - first) * 0.03, DAY_MS / 48);
    [low, high] = [first - margin, last > now ? last + margin : now];
    const at = (ms) => ((STEPS * (ms - low)) / (high - low)).toFixed(1);
    const shown = marks.filter((_, index) => index % Math.ceil(marks.length / MARKS_MAX) === 0);
    replace(
      strip,
      shown.map((mark) => svg("path", { d: `M${at(mark)} 0V8` })),
      high > now && svg("path", { class: "now", d: `M${at(now)} 0V8` }),
    );
    replace(ends, h("span", null, date(low)), h("span", null, high > now ? date(high) : "now"));
    place();
    say();
  };
  return made;
}

// What a datetime-local control takes: this browser's clock, to the minute.
function local(ms) {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
