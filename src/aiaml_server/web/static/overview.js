// What the pane shows while no memory is open: how many there are, of whom, of when, about what;
// and what happened lately.

import { ago, copyable, exact, h, plural, s } from "./elements.js";
import { constellation, ranked, timeline } from "./pictures.js";
import { topicsOf, valueOf } from "./query.js";

const FEW = 8; // topics that a circle can show

// Fill the pane. `actions` are what a click does: `time(since, until)`, `topic`, `agent`, `user`, `open`.
export function overview(pane, counts, lately, chips, actions) {
  const focus = pane.querySelector(":focus")?.dataset.key;
  const open = [...pane.querySelectorAll("details[open]")].map((each) => each.dataset.key);
  const margins = innerWidth > 800 ? 64 : 32;
  const width = Math.max(Math.min(pane.clientWidth - margins, 860), 240);
  pane.replaceChildren(h("div", { class: "overview" },
    h("h1", {}, title(counts)),
    counts.malformed ? h("p", { class: "hint" }, malformed(counts.malformed)) : null,
    counts.all ? pictures(counts, lately, chips, actions, width) : empty()));
  for (const each of pane.querySelectorAll("[data-key]")) {
    if (open.includes(each.dataset.key)) each.open = true;
    if (focus === each.dataset.key) each.focus({ preventScroll: true });
  }
}

function title({ all, count }) {
  if (!all) return "No memories yet";
  return count === all ? plural(all, "memory") : `${count.toLocaleString()} of ${plural(all, "memory")}`;
}

const malformed = (count) =>
  `${plural(count, "file")} beside them ${count === 1 ? "is" : "are"} no memory and left as ${count === 1 ? "it is" : "they are"}.`;

function empty() {
  return [
    h("p", {}, "Agents store memories here. Connect those on this computer once, in a terminal:"),
    copyable("aiaml install --all"),
    h("p", { class: "hint" }, "Or write the first one yourself: New, above."),
  ];
}

function pictures({ time, topics, pairs, agents, users }, lately, chips, actions, width) {
  const chosen = topicsOf(chips).map((each) => each.toLowerCase());
  const linked = new Set(pairs.flatMap(([a, b]) => [a, b]));
  const days = { since: valueOf(chips, "since"), until: valueOf(chips, "until") };
  const related = linked.size <= FEW
    ? constellation(topics, pairs, chosen, width, actions.topic)
    : ranked(topics, pairs, actions.topic);
  return [
    time.bars.length ? part("Over time", timeline(time, days, width, actions.time)) : null,
    lately.length ? part("Lately", events(lately, actions.open)) : null,
    topics.length ? part("Topics", tags(topics.slice(0, 40), chosen, actions.topic)) : null,
    pairs.length ? part("Topics that go together", related) : null,
    h("div", { class: "columns" },
      part("Agents", meters("agent", agents.slice(0, 8), valueOf(chips, "agent"), actions.agent)),
      part("About", meters("user", users.slice(0, 8), valueOf(chips, "user"), actions.user))),
  ].flat();
}

const part = (name, content) => h("section", {}, h("h2", {}, name), content);

// What git remembers of the last changes.
function events(lately, open) {
  return h("ul", { class: "lately" }, lately.slice(0, 8).map(({ what, file, title, agent, time, machine, there, memories }) => h("li", {},
    h("span", { class: "what" }, what),
    memories > 1 ? h("span", { class: "title" }, plural(memories, "memory"))
      : there ? h("button", { type: "button", class: "title", onclick: () => open(file) }, title) : h("span", { class: "title" }, title),
    h("span", { class: "hint" }, [agent, machine && `from ${machine}`].filter(Boolean).join(", ")),
    time ? h("time", { title: exact(time) }, ago(time)) : null)));
}

function tags(topics, chosen, pick) {
  return h("p", { class: "tags" }, topics.map(([name, count]) => h("button", {
    type: "button", class: "tag", "data-key": `tag ${name}`, "aria-pressed": String(chosen.includes(name.toLowerCase())),
    onclick: () => pick(name),
  }, name, h("span", { class: "number" }, count.toLocaleString()))));
}

function meters(kind, names, chosen, pick) {
  const most = Math.max(...names.map(([, count]) => count), 1);
  return h("ul", { class: "meters" }, names.map(([name, count]) => h("li", {}, h("button", {
    type: "button", "data-key": `${kind} ${name}`, "aria-pressed": String(name.toLowerCase() === chosen.toLowerCase()),
    onclick: () => pick(name),
  }, h("span", { class: "name" }, name || "(nobody)"), h("span", { class: "number" }, count.toLocaleString()),
  s("svg", { class: "meter", "aria-hidden": "true" },
    s("rect", { width: `${(count / most) * 100}%`, height: "100%", rx: 2.5 }))))));
}
