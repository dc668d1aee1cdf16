// The list: a row for each memory, and those that are selected.

import { ago, byId, exact, h, marked } from "./elements.js";

export const selected = new Set(); // files
let all = 0; // how many are meant, where all are selected, also those that are not listed
let last = ""; // the file that was selected last
let known = new Set(); // files of the rows that were there

// Show memories; with `fresh`, those that were not there before stand out. `empty` stands where there is none.
export function fill(memories, { fresh = false, address, more, choice = true, empty }) {
  const at = links().indexOf(document.activeElement);
  const focused = document.activeElement?.dataset.file;
  const rows = memories.map((each) => row(each, address(each.file), fresh && !known.has(each.file)));
  byId("hits").replaceChildren(rows.length ? h("ol", {}, rows) : h("div", { class: "empty" }, empty));
  known = new Set(memories.map(({ file }) => file));
  for (const file of selected) if (!known.has(file)) selected.delete(file);
  byId("all").hidden = !memories.length || !choice;
  byId("more").hidden = !more;
  tick();
  if (at >= 0) (link(focused) ?? links()[Math.min(at, rows.length - 1)] ?? byId("hits")).focus();
}

function row(memory, address, fresh) {
  const { file, timestamp, agent, user, topics, title, excerpt, score, keywords = [], why } = memory;
  const [words, tags] = [marked(excerpt, keywords), marked(topics.join(" "), keywords)];
  const second = words.length > 1 || !keywords.length ? [words, tags] : [tags, words]; // what was found stands first
  return h("li", {}, h("a", { href: address, "data-file": file, class: fresh ? "fresh" : "" },
    h("span", { class: "line" },
      h("span", { class: "title", dir: "auto" }, marked(title || "(empty)", keywords)),
      h("time", { title: exact(timestamp) }, ago(timestamp))),
    h("span", { class: "line" },
      h("span", { class: "excerpt", dir: "auto" }, second[0], second.every((each) => each.join("")) ? " — " : "", second[1]),
      h("span", { class: "who", title: user ? `${agent || "(nobody)"}, about ${user}` : agent },
        score ? h("span", { class: "score", title: reason(score, why) }, `score ${score.toLocaleString()}`) : null,
        score && agent ? " · " : "", agent))));
}

// Of what a score is the sum.
function reason(score, why = []) {
  const words = why.map(({ word, memories }) => `${word} (in ${memories.toLocaleString()})`);
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
