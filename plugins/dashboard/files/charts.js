// Charts over time, drawn by uPlot, which is loaded when the first one is.

import { h, replace } from "./kit.js";

const STYLE = "/dashboard/vendor/uplot/uplot.css";
const HEIGHT_PX = 200;

// A chart of series over time, as wide as its place; it follows the theme and the window.
//   at      times in milliseconds, rising
//   series  [{label, values, tone: 1 to 6, format: number -> text, kind: "line" | "bars", scale}], as many values as times; null where there is none
//   says    the same in words, for who does not see it
export function timeChart({ at, series, says, height = HEIGHT_PX, signal }) {
  const frame = h("div", { class: "chart", role: "img", "aria-label": says, css: { "min-height": `${height}px` } });
  draw(frame, { at, series, height, signal });
  return frame;
}

async function draw(frame, { at, series, height, signal }) {
  if (!document.querySelector(`link[href="${STYLE}"]`)) document.head.append(h("link", { rel: "stylesheet", href: STYLE }));
  const { default: UPlot } = await import("./vendor/uplot/uplot.js");
  if (signal?.aborted) return;
  let chart = null;
  const paint = () => {
    chart?.destroy();
    replace(frame);
    if (frame.clientWidth)
      chart = new UPlot(
        options(UPlot, frame, at, series, height),
        [at.map((ms) => ms / 1_000), ...series.map(({ values }) => values)],
        frame,
      );
  };
  let wide = 0;
  const watch = new ResizeObserver(() => {
    if (frame.clientWidth === wide) return;
    wide = frame.clientWidth;
    chart ? chart.setSize({ width: wide, height }) : paint();
  });
  watch.observe(frame);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.addEventListener("themechange", paint);
  dark.addEventListener("change", paint);
  signal?.addEventListener("abort", () => {
    watch.disconnect();
    document.removeEventListener("themechange", paint);
    dark.removeEventListener("change", paint);
    chart?.destroy();
  });
}

// The places of values that no line leads to: each is a point.
const alone = (values) => [...values.keys()].filter((at) => values[at] != null && values[at - 1] == null && values[at + 1] == null);

function options(UPlot, frame, at, series, height) {
  // A canvas knows no variables: have the browser resolve them.
  const colour = (name) => {
    frame.style.color = `var(${name})`;
    const resolved = getComputedStyle(frame).color;
    frame.style.color = "";
    return resolved;
  };
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const half = series.some(({ kind }) => kind === "bars") && at.length > 1 ? (at[1] - at[0]) / 2_000 : 0; // so that no bar is cut at the edge
  const scales = [...new Set(series.map(({ scale = "y" }) => scale))];
  const plain = (value) => value.toLocaleString();
  return {
    width: frame.clientWidth,
    height,
    cursor: { points: { size: 6 } },
    legend: { live: true },
    scales: {
      x: { range: (_, first, last) => [first - half, last + half] },
      ...Object.fromEntries(scales.map((scale) => [scale, { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] }])),
    },
    axes: [
      { ...axis, grid: { show: false } },
      ...scales.map((scale, index) => {
        const { format = plain } = series.find((one) => (one.scale ?? "y") === scale);
        return {
          ...axis,
          scale,
          side: index ? 1 : 3,
          size: 56,
          grid: index ? { show: false } : axis.grid,
          values: (_, splits) => splits.map((value) => (value == null ? "" : format(value))),
        };
      }),
    ],
    series: [
      {},
      ...series.map(({ label, tone = 1, format = plain, kind = "line", scale = "y" }) => ({
        label,
        scale,
        stroke: colour(`--tone-${tone}`),
        fill: kind === "bars" ? colour(`--tone-${tone}`) : undefined,
        width: kind === "bars" ? 0 : 2,
        points: { show: kind !== "bars", filter: (_, index) => alone(series[index - 1].values) },
        paths: kind === "bars" ? UPlot.paths.bars({ size: [0.7, 40], radius: 0.1 }) : undefined,
        value: (_, value) => (value == null ? "–" : format(value)),
      })),
    ],
  };
}
