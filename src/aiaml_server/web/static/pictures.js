// Two pictures: memories over time, and topics that go together. Each has a table beside it that
// says and does the same.

import { h, plural, s } from "./elements.js";

const HEAD = 18; // the greatest number
const TALL = 96; // the bars, below it
const FOOT = 22; // the labels below them

// Bars over time. `pick(since, until)` is called with the days of a bar, the second exclusive.
export function timeline({ unit, bars }, chosen, width, pick) {
  const most = Math.max(...bars.map(([, , count]) => count));
  const step = width / bars.length;
  const gap = Math.min(step * 0.25, 6);
  const label = labels(unit);
  const caption = h("p", { class: "caption", "aria-hidden": "true" });
  const say = (bar) => {
    caption.textContent = bar ? `${label.whole(bar[0])} · ${plural(bar[2], "memory")}` : hint(unit);
  };
  const columns = bars.map((bar, place) => {
    const [since, until, count] = bar;
    const tall = count ? Math.max((count / most) * TALL, 3) : 0;
    const inside = (!chosen.since || since >= chosen.since) && (!chosen.until || until <= chosen.until);
    return s("g", {
      class: inside ? "bar" : "bar out",
      onpointerenter: () => say(bar),
      onclick: (event) => pick(...span(event, chosen, since, until)),
    },
      s("rect", { class: "field", x: place * step, y: 0, width: step, height: TALL }),
      s("rect", {
        class: "ink", x: place * step + gap / 2, y: TALL - tall, rx: Math.min(2, step / 4),
        width: Math.max(Math.min(step - gap, 48), 1), height: tall,
      }));
  });
  say(null);
  const picture = s("svg", {
    class: "timeline", viewBox: `0 ${-HEAD} ${width} ${HEAD + TALL + FOOT}`, width, height: HEAD + TALL + FOOT,
    role: "img", "aria-label": `Memories by ${unit}; the table below says the same`,
    onpointerleave: () => say(null),
  },
    s("line", { class: "most", x1: 0, x2: width, y1: 0, y2: 0 }),
    s("text", { class: "tick", x: width, y: -5, "text-anchor": "end" }, most.toLocaleString()),
    s("line", { class: "ground", x1: 0, x2: width, y1: TALL + 0.5, y2: TALL + 0.5 }),
    columns, ticks(bars, step, width, label));
  const rows = bars.filter(([, , count]) => count).map(([since, until, count]) => [
    button(`time ${since}`, label.whole(since), () => pick(since, until)), count]);
  return h("figure", {}, picture, caption, table("time", [unit, "memories"], rows.reverse()));
}

const hint = (unit) => `By ${unit}. Click for a ${unit}, Shift-click for more.`;

// With Shift, a click extends what is chosen.
function span(event, chosen, since, until) {
  if (!event.shiftKey || !chosen.since || !chosen.until) return [since, until];
  return [since < chosen.since ? since : chosen.since, until > chosen.until ? until : chosen.until];
}

function labels(unit) {
  const format = (options) => {
    const made = new Intl.DateTimeFormat(undefined, options);
    return (day) => made.format(new Date(`${day}T00:00`));
  };
  const day = format({ day: "numeric", month: "short" });
  const full = format({ dateStyle: "medium" });
  const year = format({ year: "numeric" });
  return {
    day: { short: day, whole: full },
    week: { short: day, whole: (start) => `Week of ${full(start)}` },
    month: { short: format({ month: "short", year: "2-digit" }), whole: format({ month: "long", year: "numeric" }) },
    year: { short: year, whole: year },
  }[unit];
}

function ticks(bars, step, width, label) {
  const every = Math.ceil(bars.length / Math.max(Math.floor(width / 76), 1));
  return bars.map(([since], place) => {
    const x = place * step + Math.min(step, 54) / 2;
    if (place % every || x > width - 24) return null;
    const anchor = x < 24 ? { x: 0, "text-anchor": "start" } : { x, "text-anchor": "middle" };
    return s("text", { class: "tick", y: TALL + 16, ...anchor }, label.short(since));
  });
}

const WIDEST = 560; // of the circle with its names
const BESIDE = 88; // the names, left and right of it

// Topics on a circle; a line joins two that stand together, the oftener the thicker.
export function constellation(topics, pairs, chosen, width, pick) {
  const wide = Math.min(width, WIDEST);
  const radius = Math.min(wide / 2 - BESIDE, 160);
  const high = 2 * radius + 76;
  const counts = new Map(topics);
  const names = around(pairs);
  const most = Math.max(...names.map((name) => counts.get(name) ?? 0));
  const strongest = Math.max(...pairs.map(([, , count]) => count));
  const at = new Map(names.map((name, place) => [name, point(place / names.length, radius)]));
  const lines = pairs.map(([a, b, count]) => s("path", {
    class: "thread", "data-a": a, "data-b": b,
    d: `M${at.get(a)} Q0 0 ${at.get(b)}`,
    "stroke-width": 0.8 + 5 * (count / strongest),
    "stroke-opacity": 0.18 + 0.5 * (count / strongest),
  }, s("title", {}, `${a} and ${b}: ${plural(count, "memory")}`)));
  const nodes = names.map((name, place) => {
    const turn = place / names.length;
    const size = (4 + 8 * Math.sqrt((counts.get(name) ?? 0) / most)) * Math.sqrt(radius / 160);
    const right = turn < 0.5;
    const [x, y] = point(turn, radius + size + 7);
    const middle = Math.abs(x) < 12;
    return s("g", {
      class: chosen.includes(name.toLowerCase()) ? "node chosen" : "node",
      tabindex: "0", role: "button", "data-name": name, "data-key": `node ${name}`,
      "aria-label": `${shortened(name)}, ${plural(counts.get(name) ?? 0, "memory")}`,
      onclick: () => pick(name),
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        pick(name);
      },
    },
      s("circle", { class: "reach", cx: at.get(name)[0], cy: at.get(name)[1], r: size + 8 }),
      s("circle", { cx: at.get(name)[0], cy: at.get(name)[1], r: size }),
      s("text", {
        x, y, dy: middle ? (y > 0 ? "0.9em" : "-0.15em") : "0.35em",
        "text-anchor": middle ? "middle" : right ? "start" : "end",
      }, shortened(name)), s("title", {}, name));
  });
  const picture = s("svg", {
    class: "constellation", viewBox: `${-wide / 2} ${-high / 2} ${wide} ${high}`, width: wide, height: high,
    role: "group", "aria-label": "Topics that go together; the table below says the same",
  }, s("g", { class: "threads" }, lines), nodes);
  shine(picture, nodes, lines, pairs);
  const rows = pairs.slice(0, 60).map(([a, b, count]) => [
    button(`first ${a} ${b}`, a, () => pick(a)), button(`second ${a} ${b}`, b, () => pick(b)), count]);
  return h("figure", {}, picture, table("pairs", ["topic", "with", "memories"], rows));
}

const MOST_RANKED = 12;

// Pairs of topics as a list: first those that stand together far oftener than chance would have it.
export function ranked(topics, pairs, pick) {
  const counts = new Map(topics);
  const all = Math.max(...counts.values());
  const strength = ([a, b, count]) => count * Math.log(1 + (count * all) / ((counts.get(a) ?? all) * (counts.get(b) ?? all)));
  const best = [...pairs].sort((one, other) => strength(other) - strength(one)).slice(0, MOST_RANKED);
  const most = Math.max(...best.map(([, , count]) => count));
  return h("ol", { class: "meters pairs" }, best.map(([a, b, count]) => h("li", {},
    h("span", { class: "name" }, button(`first ${a} ${b}`, a, () => pick(a)), " + ", button(`second ${a} ${b}`, b, () => pick(b))),
    h("span", { class: "number" }, plural(count, "memory")),
    s("svg", { class: "meter", "aria-hidden": "true" }, s("rect", { width: `${(count / most) * 100}%`, height: "100%", rx: 2.5 })))));
}

const shortened = (name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name);

function point(turn, radius) {
  const angle = turn * 2 * Math.PI;
  return [Math.sin(angle) * radius, -Math.cos(angle) * radius].map((each) => Math.round(each * 10) / 10);
}

// The topics in an order that puts beside each other what goes together most.
function around(pairs) {
  const left = new Set(pairs.flatMap(([a, b]) => [a, b]));
  const order = [];
  let last;
  while (left.size) {
    const near = pairs.find(([a, b]) => (a === last && left.has(b)) || (b === last && left.has(a)));
    last = near ? (near[0] === last ? near[1] : near[0]) : left.values().next().value;
    left.delete(last);
    order.push(last);
  }
  return order;
}

// What is pointed at, or has the focus, stands out with its neighbours.
function shine(picture, nodes, lines, pairs) {
  const show = (name) => {
    picture.classList.toggle("lit", Boolean(name));
    const near = new Set(pairs.filter(([a, b]) => a === name || b === name).flatMap(([a, b]) => [a, b]));
    for (const node of nodes) node.classList.toggle("on", near.has(node.dataset.name));
    for (const line of lines) line.classList.toggle("on", line.dataset.a === name || line.dataset.b === name);
  };
  for (const node of nodes) {
    for (const event of ["pointerenter", "focus"]) node.addEventListener(event, () => show(node.dataset.name));
    for (const event of ["pointerleave", "blur"]) node.addEventListener(event, () => show(null));
  }
}

// The key tells a button, or an open table, from others when the picture is drawn anew.
const button = (key, text, onclick) => h("button", { type: "button", "data-key": key, onclick }, text);

function table(key, heads, rows) {
  return h("details", { class: "table", "data-key": key },
    h("summary", {}, "As a table"),
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) =>
        h("td", {}, typeof cell === "number" ? cell.toLocaleString() : cell)))))));
}
