// What the pane shows while no memory is open: how many there are, of whom, of when, about what;
// and how sync stands.

import { byId, h, moment, plural, s } from "./elements.js";
import { constellation, timeline } from "./pictures.js";

// Fill the pane. `actions` are what a click does: `time(since, until)`, `topic`, `agent`, `user`.
export function overview(pane, counts, state, actions) {
  const focus = pane.querySelector(":focus")?.dataset.key;
  const open = [...pane.querySelectorAll("details[open]")].map((each) => each.dataset.key);
  const margins = innerWidth > 800 ? 64 : 32;
  const width = Math.max(Math.min(pane.clientWidth - margins, 860), 240);
  pane.replaceChildren(h("div", { class: "overview" },
    h("h1", {}, title(counts, state)),
    counts.malformed ? h("p", { class: "hint" }, malformed(counts.malformed)) : null,
    counts.all ? pictures(counts, state, actions, width) : h("p", { class: "hint" },
      "Agents store memories over MCP; you can with ", h("code", {}, "aiaml remember"), ".")));
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

function pictures({ time, topics, pairs, agents, users }, state, actions, width) {
  const chosen = state.topics.map((each) => each.toLowerCase());
  return [
    time.bars.length ? part("Over time", timeline(time, state, width, actions.time)) : null,
    pairs.length ? part("Topics that go together", constellation(topics, pairs, chosen, width, actions.topic)) : null,
    topics.length ? part("Topics", tags(topics.slice(0, 40), chosen, actions.topic)) : null,
    h("div", { class: "columns" },
      part("Agents", meters("agent", agents.slice(0, 8), state.agent, actions.agent)),
      part("About", meters("user", users.slice(0, 8), state.user, actions.user))),
  ];
}

const part = (name, content) => h("section", {}, h("h2", {}, name), content);

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

// --- sync -----------------------------------------------------------------------------------------

export let standing = null; // how it stood when it was last asked

export function showSync(status) {
  standing = status;
  const [kind, words] = inShort(status);
  const button = byId("sync");
  button.className = `quiet ${kind}`;
  button.lastElementChild.textContent = words;
  byId("sync-facts").replaceChildren(...facts(status));
}

function inShort(status) {
  if (!status.sync) return ["off", "Sync off"];
  const held = Object.keys(status.held_back).length;
  if (status.problem) return ["bad", "Sync fails"];
  if (held) return ["bad", `${held} held back`];
  if (!status.last_commit && !status.last_fetch) return ["off", "Not synced yet"];
  if (!status.remote) return ["good", "In git"];
  if (status.ahead || status.behind) return ["busy", `${status.ahead + status.behind} to sync`];
  return ["good", "In sync"];
}

function facts(status) {
  const held = Object.entries(status.held_back);
  const rows = [
    ["Memories lie in", status.base],
    ["Committed", status.last_commit && moment(status.last_commit)],
    ["Remote asked", status.last_fetch && moment(status.last_fetch)],
    ["Remote took ours", status.last_push && moment(status.last_push)],
    ["Commits to send", status.remote && String(status.ahead)],
    ["Commits to take in", status.remote && String(status.behind)],
    ["Fails since", status.failing_since && moment(status.failing_since)],
  ];
  return [
    h("p", { class: status.problem ? "trouble" : "" }, sentence(status)),
    h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    ...(held.length ? [h("p", {}, "Kept out of git:"), h("ul", {}, held.map(([file, why]) =>
      h("li", {}, h("code", {}, file), ` ${why}`)))] : []),
  ];
}

function sentence(status) {
  if (!status.sync) return "Sync is off (AIAML_ENABLE_SYNC): memories are files on this computer, and nothing else.";
  if (status.problem) return status.problem;
  if (!status.remote) return "Memories are kept in git on this computer. With AIAML_GITHUB_REMOTE they are exchanged with others.";
  return "Memories are kept in git, and exchanged with the remote.";
}
