// What the pane shows while no memory is open: of when the memories that are listed are, about what,
// of whom; and what happened lately.

import { ago, exact, h, plural, s } from "./elements.js";
import { ranked, timeline } from "./pictures.js";
import { topicsOf, valueOf } from "./query.js";

// Fill the pane. `actions` are what a click does: `time(since, until)`, `topic`, `agent`, `user`, `open`;
// `title` is how many there are, for where the list is not beside it.
export function overview(pane, counts, lately, chips, title, actions) {
  const focus = pane.querySelector(":focus")?.dataset.key;
  const open = [...pane.querySelectorAll("details[open]")].map((each) => each.dataset.key);
  const margins = innerWidth > 800 ? 64 : 32;
  const width = Math.max(Math.min(pane.clientWidth - margins, 860), 240);
  pane.replaceChildren(h("div", { class: "overview" },
    h("div", { class: "lone" }, h("h1", {}, title), h("button", { type: "button", class: "quiet", onclick: actions.close }, "Close")),
    counts.malformed ? h("p", { class: "hint" }, malformed(counts.malformed)) : null,
    counts.count ? pictures(counts, lately, chips, actions, width) : null));
  for (const each of pane.querySelectorAll("[data-key]")) {
    if (open.includes(each.dataset.key)) each.open = true;
    if (focus === each.dataset.key) each.focus({ preventScroll: true });
  }
}

const malformed = (count) =>
  `${plural(count, "file")} beside them ${count === 1 ? "is" : "are"} no memory and left as ${count === 1 ? "it is" : "they are"}.`;

function pictures({ all, count, time, topics, pairs, agents, users }, lately, chips, actions, width) {
  const chosen = topicsOf(chips).map((each) => each.toLowerCase());
  const days = { since: valueOf(chips, "since"), until: valueOf(chips, "before") };
  return [
    time.bars.length ? part("Over time", timeline(time, days, width, actions.time)) : null,
    lately.length ? part("Lately", events(lately, actions.open)) : null,
    topics.length ? part("Topics", tags(topics.slice(0, 40), chosen, actions.topic)) : null,
    (count === all ? pairs.length : pairs.some(([, , number]) => number > 1)) ? part("Topics that go together", ranked(topics, pairs, actions.topic)) : null,
    h("div", { class: "columns" },
      part("Agents", meters("agent", agents.slice(0, 8), valueOf(chips, "agent"), actions.agent)),
      part("About", meters("user", users.slice(0, 8), valueOf(chips, "user"), actions.user))),
  ].flat();
}

const part = (name, content) => h("section", {}, h("h2", {}, name), content);

// What git remembers of the last changes.
function events(lately, open) {
  return h("ul", { class: "lately" }, lately.slice(0, 8).map(({ what, file, title, agent, time, machine, there, memories }) => h("li", {},
    memories > 1 ? h("span", { class: "title" }, plural(memories, "memory"))
      : there ? h("button", { type: "button", class: "title", dir: "auto", onclick: () => open(file) }, title) : h("span", { class: "title", dir: "auto" }, title),
    h("span", { class: "what" }, [what, agent, machine && `from ${machine}`].filter(Boolean).join(" · ")),
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
