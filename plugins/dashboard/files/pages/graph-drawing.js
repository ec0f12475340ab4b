// The drawing of a graph: a layout that settles while it is looked at, on a canvas that is panned, zoomed and taken hold of.

import { button, h } from "../kit.js";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "../vendor/d3-force/d3-force.js";

const ZOOM_MIN = 0.08;
const ZOOM_MAX = 4;
const ZOOM_STEP = 1.3;
const PAN_PX = 60;
const FIT_MARGIN_PX = 48;
const CLICK_SLACK_PX = 4;
const HIT_SLACK_PX = 6;
const LABELS_MAX = 90; // at full size; from afar there are fewer
const LABELS_MIN = 14;
const DOT_PX_MIN = 2.2;
const LINE_PX_MIN = 0.6;
const LABEL_CHARS_MAX = 26;
const LINK_LABELS_MAX = 40;
const SETTLED_TICKS = 140; // at once, where motion is not wanted
const TONES = 6;

// onselect gets the id of the node that was chosen, or null; onopen that of one that was chosen twice.
export class Drawing {
  #nodes = [];
  #links = [];
  #near = new Map(); // id -> Set of neighbours' ids
  #view = { k: 1, x: 0, y: 0 };
  #size = { width: 0, height: 0 };
  #selected = null;
  #hovered = null;
  #down = new Map(); // pointer -> where it is
  #held = null; // {node or null, moved, at}
  #follows = true; // whether the view still fits itself to the drawing
  #frame = 0;
  #colours = null;

  constructor({ onselect, onopen, signal }) {
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "The graph" });
    const act = (label, name, run) => button(label, run, { kind: "small", title: name, "aria-label": name });
    this.element = h(
      "div",
      { class: "drawing" },
      this.canvas,
      h(
        "div",
        { class: "drawing-buttons" },
        act("+", "Zoom in", () => this.zoom(ZOOM_STEP)),
        act("−", "Zoom out", () => this.zoom(1 / ZOOM_STEP)),
        act("Fit", "Fit the drawing to the window", () => this.fit()),
      ),
    );
    Object.assign(this, { onselect, onopen });
    this.simulation = forceSimulation([])
      .force(
        "link",
        forceLink([])
          .id((node) => node.id)
          .distance((link) => 60 + 4 * Math.min(10, Math.sqrt(link.source.degree + link.target.degree))),
      )
      .force(
        "charge",
        forceManyBody()
          .strength((node) => -120 - 12 * Math.min(20, node.degree))
          .distanceMax(600),
      )
      .force("x", forceX().strength(0.05))
      .force("y", forceY().strength(0.07))
      .force(
        "collide",
        forceCollide((node) => radius(node) + 4),
      )
      .on("tick", () => (this.#follows ? this.#fitNow() : 0, this.#paintSoon()))
      .stop();
    this.#listen(signal);
  }

  // nodes: [{id, name, tone, degree}], links: [{id, source, target, type, contested}] by the ids of nodes. What was drawn stays where it is.
  show(nodes, links) {
    const known = new Map(this.#nodes.map((node) => [node.id, node]));
    this.#near = new Map(nodes.map(({ id }) => [id, new Set()]));
    for (const { source, target } of links) (this.#near.get(source).add(target), this.#near.get(target).add(source));
    this.#nodes = nodes.map((node) => Object.assign(known.get(node.id) ?? this.#placed(node, known), node));
    this.#links = links.map((link) => ({ ...link }));
    this.simulation.nodes(this.#nodes);
    this.simulation.force("link").links(this.#links);
    if (!this.#near.has(this.#selected)) this.#selected = null;
    this.canvas.setAttribute(
      "aria-label",
      `The graph: ${nodes.length} entities and ${links.length} relationships. The list has the same as text.`,
    );
    const settled = nodes.every(({ id }) => known.has(id));
    this.simulation.alpha(settled ? 0.15 : known.size ? 0.5 : 1);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.simulation.stop().tick(SETTLED_TICKS);
      if (this.#follows) this.#fitNow();
    } else this.simulation.restart();
    this.#paintSoon();
  }

  // A new node begins beside a neighbour that is there.
  #placed(node, known) {
    const beside = [...this.#near.get(node.id)].map((id) => known.get(id)).find(Boolean);
    return beside ? { x: beside.x + 30 * (Math.random() - 0.5), y: beside.y + 30 * (Math.random() - 0.5) } : {};
  }

  select(id) {
    this.#selected = id;
    this.#paintSoon();
  }

  centre(id) {
    const node = this.#nodes.find((one) => one.id === id);
    if (!node) return;
    this.#follows = false;
    const k = Math.max(this.#view.k, 1);
    this.#view = { k, x: this.#size.width / 2 - k * node.x, y: this.#size.height / 2 - k * node.y };
    this.#paintSoon();
  }

  zoom(factor, x = this.#size.width / 2, y = this.#size.height / 2) {
    const { k, x: left, y: top } = this.#view;
    const now = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, k * factor));
    this.#follows = false;
    this.#view = { k: now, x: x - ((x - left) * now) / k, y: y - ((y - top) * now) / k };
    this.#paintSoon();
  }

  pan(x, y) {
    this.#follows = false;
    this.#view.x += x;
    this.#view.y += y;
    this.#paintSoon();
  }

  // The whole drawing, now and while it settles.
  fit() {
    this.#follows = true;
    this.#fitNow();
    this.#paintSoon();
  }

  #fitNow() {
    const { width, height } = this.#size;
    if (!this.#nodes.length || !width) return;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y } of this.#nodes)
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
    const k = Math.min(
      1.6,
      Math.max(ZOOM_MIN, Math.min((width - 2 * FIT_MARGIN_PX) / (right - left || 1), (height - 2 * FIT_MARGIN_PX) / (bottom - top || 1))),
    );
    this.#view = { k, x: width / 2 - (k * (left + right)) / 2, y: height / 2 - (k * (top + bottom)) / 2 };
  }

  // --- hands and keys -------------------------------------------------------------------------------------------------

  #listen(signal) {
    const { canvas } = this;
    const on = (name, run, options) => canvas.addEventListener(name, run, options);
    on("pointerdown", (event) => this.#press(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#release(event));
    on("pointercancel", (event) => this.#release(event, true));
    on("pointerleave", () => this.#hover(null));
    on("dblclick", (event) => {
      const node = this.#at(event.offsetX, event.offsetY);
      if (node) this.onopen(node.id);
    });
    on(
      "wheel",
      (event) => (
        event.preventDefault(),
        this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.offsetX, event.offsetY)
      ),
      { passive: false },
    );
    on("keydown", (event) => {
      const keys = {
        ArrowLeft: () => this.pan(PAN_PX, 0),
        ArrowRight: () => this.pan(-PAN_PX, 0),
        ArrowUp: () => this.pan(0, PAN_PX),
        ArrowDown: () => this.pan(0, -PAN_PX),
        "+": () => this.zoom(ZOOM_STEP),
        "=": () => this.zoom(ZOOM_STEP),
        "-": () => this.zoom(1 / ZOOM_STEP),
        0: () => this.fit(),
        Escape: () => this.onselect(null),
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) (event.preventDefault(), keys[event.key]());
    });
    const watch = new ResizeObserver(() => this.#resize());
    watch.observe(this.element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => ((this.#colours = null), this.#paintSoon());
    document.addEventListener("themechange", recolour, { signal });
    dark.addEventListener("change", recolour, { signal });
    signal.addEventListener("abort", () => (watch.disconnect(), this.simulation.stop(), cancelAnimationFrame(this.#frame)));
  }

  #press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.#down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.#held = {
      node: this.#down.size === 1 ? this.#at(event.offsetX, event.offsetY) : null,
      moved: this.#down.size > 1,
      at: { x: event.offsetX, y: event.offsetY },
    };
  }

  #move(event) {
    const { offsetX: x, offsetY: y } = event;
    const before = this.#down.get(event.pointerId);
    if (!before) return this.#hover(this.#at(x, y));
    const others = [...this.#down].filter(([pointer]) => pointer !== event.pointerId).map(([, at]) => at);
    this.#down.set(event.pointerId, { x, y });
    if (others.length) {
      const apart = (one) => Math.hypot(one.x - others[0].x, one.y - others[0].y) || 1;
      this.zoom(apart({ x, y }) / apart(before), (x + others[0].x) / 2, (y + others[0].y) / 2);
      return this.pan((x - before.x) / 2, (y - before.y) / 2);
    }
    const { node, at } = this.#held;
    if (!this.#held.moved && Math.hypot(x - at.x, y - at.y) < CLICK_SLACK_PX) return;
    this.#held.moved = true;
    if (!node) return this.pan(x - before.x, y - before.y);
    this.#follows = false;
    [node.fx, node.fy] = [(x - this.#view.x) / this.#view.k, (y - this.#view.y) / this.#view.k];
    this.simulation.alphaTarget(0.2).restart();
  }

  #release(event, cancelled = false) {
    this.#down.delete(event.pointerId);
    if (this.#down.size || !this.#held) return;
    const { node, moved } = this.#held;
    this.#held = null;
    if (node) [node.fx, node.fy] = [null, null];
    this.simulation.alphaTarget(0);
    if (!moved && !cancelled) this.onselect(node?.id ?? null);
  }

  #hover(node) {
    if ((node?.id ?? null) === this.#hovered) return;
    this.#hovered = node?.id ?? null;
    this.canvas.classList.toggle("over-node", !!node);
    this.#paintSoon();
  }

  #at(x, y) {
    const { k, x: left, y: top } = this.#view;
    let [best, nearest] = [null, Infinity];
    for (const node of this.#nodes) {
      const distance = Math.hypot(node.x * k + left - x, node.y * k + top - y) - this.#seen(node) * k;
      if (distance < Math.min(HIT_SLACK_PX, nearest)) [best, nearest] = [node, distance];
    }
    return best;
  }

  // --- painting -------------------------------------------------------------------------------------------------------

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [width * ratio, height * ratio];
    const before = this.#size;
    this.#size = { width, height };
    if (this.#follows) this.#fitNow();
    else if (before.width) {
      this.#view.x += (width - before.width) / 2; // what was in the middle stays there
      this.#view.y += (height - before.height) / 2;
    }
    this.#paintSoon();
  }

  #paintSoon() {
    this.#frame ||= requestAnimationFrame(() => ((this.#frame = 0), this.#paint()));
  }

  #paint() {
    const paper = this.canvas.getContext("2d");
    const colours = (this.#colours ??= resolved(this.canvas));
    const { k, x, y } = this.#view;
    const ratio = devicePixelRatio || 1;
    const chosen = this.#hovered ?? this.#selected;
    const near = chosen ? this.#near.get(chosen) : null;
    const bright = (id) => !near || id === chosen || near.has(id);
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    paper.clearRect(0, 0, this.#size.width, this.#size.height);
    paper.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    for (const link of this.#links) this.#paintLink(paper, colours, link, !near || link.source.id === chosen || link.target.id === chosen);
    for (const node of this.#nodes) {
      paper.globalAlpha = bright(node.id) ? 1 : 0.22;
      paper.beginPath();
      paper.arc(node.x, node.y, this.#seen(node), 0, 2 * Math.PI);
      paper.fillStyle = colours.tones[(node.tone - 1) % TONES];
      paper.fill();
      paper.lineWidth = (node.id === this.#selected ? 3 : 1.2) / Math.sqrt(k);
      paper.strokeStyle = node.id === this.#selected ? colours.text : colours.surface;
      paper.stroke();
    }
    paper.globalAlpha = 1;
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    const taken = this.#paintLabels(paper, colours, chosen, near);
    if (chosen) this.#paintLinkLabels(paper, colours, chosen, taken);
  }

  #paintLink(paper, colours, { source, target, contested }, bright) {
    const length = Math.hypot(target.x - source.x, target.y - source.y) || 1;
    const [across, down] = [(target.x - source.x) / length, (target.y - source.y) / length];
    const end = { x: target.x - across * (this.#seen(target) + 2), y: target.y - down * (this.#seen(target) + 2) };
    paper.globalAlpha = bright ? 0.9 : 0.15;
    paper.strokeStyle = paper.fillStyle = contested ? colours.bad : colours.line;
    paper.lineWidth = Math.max(contested ? 1.8 : 1.1, LINE_PX_MIN / this.#view.k);
    paper.setLineDash(contested ? [5, 4] : []);
    paper.beginPath();
    paper.moveTo(source.x, source.y);
    paper.lineTo(end.x, end.y);
    paper.stroke();
    paper.setLineDash([]);
    if (this.#view.k < 0.45 || source === target) return;
    paper.beginPath();
    paper.moveTo(end.x, end.y);
    paper.lineTo(end.x - 6 * across - 3 * down, end.y - 6 * down + 3 * across);
    paper.lineTo(end.x - 6 * across + 3 * down, end.y - 6 * down - 3 * across);
    paper.fill();
  }

  // What the relationships of the chosen node are, as far as there is room between the names.
  #paintLinkLabels(paper, colours, chosen, taken) {
    const { k, x, y } = this.#view;
    paper.font = "11px system-ui, sans-serif";
    const links = this.#links.filter(({ source, target }) => source.id === chosen || target.id === chosen);
    for (const { source, target, type, contested } of links.slice(0, LINK_LABELS_MAX)) {
      const [middle, line] = [((source.x + target.x) / 2) * k + x, ((source.y + target.y) / 2) * k + y];
      const half = paper.measureText(readable(type)).width / 2 + 2;
      if (!placed([middle - half, line - 6, middle + half, line + 6], taken)) continue;
      written(paper, readable(type), middle, line, contested ? colours.bad : colours.muted, colours.surface);
    }
  }

  // The names of what is chosen, of its neighbours, then of whatever has most relationships, as long as there is room. -> the places taken
  #paintLabels(paper, colours, chosen, near) {
    const { k, x, y } = this.#view;
    const weight = (node) => (node.id === chosen || node.id === this.#selected ? 1e6 : near?.has(node.id) ? 1e3 : 0) + node.degree;
    const seen = this.#nodes.filter((node) => {
      const [left, top] = [node.x * k + x, node.y * k + y];
      return left > -20 && top > -20 && left < this.#size.width + 20 && top < this.#size.height + 20 && (!near || weight(node) >= 1e3);
    });
    const taken = [];
    const most = Math.max(LABELS_MIN, LABELS_MAX * Math.min(1, k));
    for (const node of seen.sort((a, b) => weight(b) - weight(a))) {
      if (taken.length >= most) break;
      const strong = node.id === chosen || node.id === this.#selected;
      const text = node.name.length > LABEL_CHARS_MAX && !strong ? node.name.slice(0, LABEL_CHARS_MAX - 1) + "…" : node.name;
      paper.font = `${strong ? "600 13px" : "12px"} system-ui, sans-serif`;
      const half = paper.measureText(text).width / 2 + 4;
      const [at, line] = [node.x * k + x, node.y * k + y + this.#seen(node) * k + 10];
      const middle = at > 0 && at < this.#size.width ? Math.max(half, Math.min(this.#size.width - half, at)) : at; // no name is cut at the edge
      const box = [middle - half, line - 8, middle + half, line + 8];
      if (!placed(box, taken, strong)) continue;
      written(paper, text, middle, line, colours.text, colours.surface);
    }
    return taken;
  }

  // A node's radius as it is drawn: from afar it stays a dot.
  #seen(node) {
    return Math.max(radius(node), DOT_PX_MIN / this.#view.k);
  }
}

// Take the box if it is free, or in any case. -> whether it was taken
function placed(box, taken, anyway = false) {
  const free = !taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]);
  if (free || anyway) taken.push(box);
  return free || anyway;
}

export const readable = (type) => type.replaceAll("_", " ");

const radius = (node) => 4.5 + Math.min(11, 1.7 * Math.sqrt(node.degree));

// Text with a rim of the ground's colour, so that lines do not cross it.
function written(paper, text, x, y, colour, ground) {
  paper.textAlign = "center";
  paper.textBaseline = "middle";
  paper.lineJoin = "round";
  paper.lineWidth = 4;
  paper.strokeStyle = ground;
  paper.strokeText(text, x, y);
  paper.fillStyle = colour;
  paper.fillText(text, x, y);
}

// A canvas knows no variables: have the browser resolve them.
function resolved(canvas) {
  const colour = (name) => {
    canvas.style.color = `var(${name})`;
    return getComputedStyle(canvas).color;
  };
  const found = {
    text: colour("--text"),
    muted: colour("--muted"),
    line: colour("--strong-line"),
    surface: colour("--surface"),
    bad: colour("--bad"),
    tones: Array.from({ length: TONES }, (_, index) => colour(`--tone-${index + 1}`)),
  };
  canvas.style.color = "";
  return found;
}
