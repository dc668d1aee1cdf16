// Two pictures: memories over time, which has a table beside it that says and does the same; and
// topics that go together.

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

const MOST_RANKED = 12;

// Pairs of topics as a list: those that stand together far oftener than chance would have it.
export function ranked(topics, pairs, pick) {
  const counts = new Map(topics);
  const all = Math.max(...counts.values());
  const strength = ([a, b, count]) => count * Math.log(1 + (count * all) / ((counts.get(a) ?? all) * (counts.get(b) ?? all)));
  const best = [...pairs].sort((one, other) => strength(other) - strength(one)).slice(0, MOST_RANKED).sort((one, other) => other[2] - one[2]);
  const most = Math.max(...best.map(([, , count]) => count));
  return h("ol", { class: "meters pairs" }, best.map(([a, b, count]) => h("li", {},
    h("span", { class: "name" }, button(`first ${a} ${b}`, a, () => pick(a)), " + ", button(`second ${a} ${b}`, b, () => pick(b))),
    h("span", { class: "number" }, plural(count, "memory")),
    s("svg", { class: "meter", "aria-hidden": "true" }, s("rect", { width: `${(count / most) * 100}%`, height: "100%", rx: 2.5 })))));
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
