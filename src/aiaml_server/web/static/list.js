// The list: rows under their days, and those that are selected.

import { ago, byId, day, exact, h, marked, usesOf } from "./elements.js";

export const selected = new Set(); // files
let all = 0; // how many are meant, where all are selected, also those that are not listed
let last = ""; // the file that was selected last
let known = new Set(); // files of the rows that were there

// Show memories; with `fresh`, those that were not there before stand out.
export function fill(memories, { byDay, fresh = false, address, total, more, choice = true }) {
  const groups = [];
  for (const each of memories) {
    const name = byDay ? day(each.timestamp) : "";
    if (groups.at(-1)?.name !== name) groups.push({ name, rows: [] });
    groups.at(-1).rows.push(row(each, address(each.file), { fresh: fresh && !known.has(each.file) }));
  }
  byId("hits").replaceChildren(...groups.map(({ name, rows }, at) => h("section", name ? { "aria-labelledby": `day-${at}` } : {},
    name ? h("h2", { id: `day-${at}`, class: "day" }, name) : null, h("ol", {}, rows))));
  known = new Set(memories.map(({ file }) => file));
  for (const file of selected) if (!known.has(file)) selected.delete(file);
  byId("count").textContent = total;
  byId("all").hidden = !memories.length || !choice;
  byId("more").hidden = !more;
  tick();
}

function row(memory, address, { fresh }) {
  const { file, timestamp, agent, user, topics, title, excerpt, score, keywords = [], why, uses, new: unread, expired } = memory;
  return h("li", {}, h("a", { href: address, "data-file": file, class: fresh ? "fresh" : "" },
    h("span", { class: "line" },
      h("span", { class: "title", dir: "auto" }, unread ? h("span", { class: "unread" }, "New ") : null, expired ? h("span", { class: "over" }, "Expired ") : null, marked(title || "(empty)", keywords)),
      score ? h("span", { class: "score", title: reason(score, why) }, String(score)) : null,
      h("time", { title: exact(timestamp) }, ago(timestamp))),
    h("span", { class: "line second" },
      h("span", { class: "excerpt", dir: "auto" }, marked([excerpt, topics.join(" ")].filter(Boolean).join(" — "), keywords)),
      uses?.recalled ? h("span", { class: "uses", title: usesOf(uses) }, `${uses.recalled.toLocaleString()}× recalled`) : null,
      h("span", { class: "who", title: `${agent || "(nobody)"}, about ${user || "(nobody)"}` }, agent))));
}

// Of what a score is the sum.
function reason(score, why = []) {
  const words = why.map(({ word, memories, points }) => `${word} (in ${memories.toLocaleString()}): ${points}`);
  return `Score ${score} of ${words.join(" + ")}`;
}

export const links = () => [...byId("hits").querySelectorAll("a[data-file]")];

export const link = (file) => byId("hits").querySelector(`a[data-file="${CSS.escape(file)}"]`);

// Say which memory is open, and keep the addresses of the rows.
export function mark(open, address) {
  for (const each of links()) {
    if (each.dataset.file === open) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
    each.setAttribute("href", address(each.dataset.file));
  }
}

// --- selected -------------------------------------------------------------------------------------

// How many are selected; with `whole`, all that the question means.
export const selection = () => ({ count: all || selected.size, whole: all > 0 });

export function selectAll(number) {
  all = number;
  selected.clear();
  tick();
}

// Another question: what the last one meant is selected no more.
export function askedAnew() {
  if (all) clear();
}

export function toggle(file) {
  all = 0;
  if (!selected.delete(file)) selected.add(file);
  last = file;
  tick();
}

// Select all from the last one to this.
export function extend(file) {
  all = 0;
  const files = links().map((each) => each.dataset.file);
  const [from, to] = [Math.max(files.indexOf(last), 0), files.indexOf(file)].sort((a, b) => a - b);
  for (const each of files.slice(from, to + 1)) selected.add(each);
  last = file;
  tick();
}

export function clear() {
  all = 0;
  selected.clear();
  tick();
}

function tick() {
  for (const each of links()) each.classList.toggle("selected", all > 0 || selected.has(each.dataset.file));
  byId("selection").hidden = !selection().count;
  const words = byId("selection").querySelector("span");
  if (words) words.textContent = all ? `All ${all.toLocaleString()} selected` : `${selected.size.toLocaleString()} selected`;
}
