// One memory in the pane: read, its file, its history; forgotten ones too.

import * as api from "./api.js";
import { confirm, toast } from "./dialogs.js";
import * as editor from "./editor.js";
import { ago, byId, exact, h, placed, plural, rendered, visible } from "./elements.js";
import { standing } from "./sync.js";

const MOST_TITLES = 8; // that are shown before several are forgotten
const SLOW = 100; // memories that are not forgotten at once
const AROUND = 80; // characters about what changed
const FIRST = 600; // characters of a first version

let open = null; // the memory that is shown, as the server gave it
let view = "read"; // or "file", "history"
let calls = null; // what the page does: changed(), close(), topic(name), fail(error)

export const start = (given) => { calls = given; editor.start({ ...given, read }); };
export const current = () => (editor.dirty() || document.querySelector(".editor") ? null : open);
export const closed = () => { open = null; document.title = "Memories"; };

// Show a memory for reading.
export function read(memory) {
  const same = open?.file === memory.file;
  if (!same) view = "read";
  open = memory;
  document.title = `${visible(memory.title) || "(empty)"} · Memories`;
  const pane = byId("pane");
  const at = same ? pane.scrollTop : 0;
  const [title, article] = divided(rendered(memory.html));
  pane.setAttribute("aria-label", "Memory");
  pane.replaceChildren(h("div", { class: "memory" },
    h("div", { class: "tools" }, leaving(), h("span", { class: "gap" }),
      tab("file", "File"), tab("history", "History"),
      h("button", { type: "button", class: "quiet", onclick: copy }, "Copy"),
      h("button", { type: "button", class: "quiet roomy", onclick: () => print() }, "Print"),
      h("button", { type: "button", class: "quiet", onclick: () => editor.edit(open) }, "Edit"),
      h("button", { type: "button", class: "quiet danger", onclick: () => forgetOpen() }, "Forget…")),
    title,
    h("p", { class: "by" }, h("time", { title: exact(memory.timestamp) }, ago(memory.timestamp)),
      " · ", h("bdi", {}, memory.agent || "(nobody)"), " about ", h("bdi", {}, memory.user || "(nobody)")),
    h("div", { id: "view" }, view === "read" ? article : view === "file" ? h("pre", { class: "file", tabindex: "0", dir: "auto" }, memory.text) : h("p", { class: "hint" }, "Looking…")),
    h("p", { class: "tags" }, memory.topics.map((topic) => h("button", { type: "button", class: "tag", dir: "auto", title: "Filter by this topic", onclick: () => calls.topic(topic) }, topic))),
    h("p", { class: "place" }, h("code", {}, memory.id), " in ", h("code", {}, placed(memory)))));
  pane.scrollTop = at;
  if (view === "history") showHistory();
}

const leaving = () => h("button", { type: "button", class: "quiet back", onclick: () => calls.close() }, "Close");

// What a text is headed by, and its rest. One without a heading is text, and named to who does not see it.
function divided(article) {
  const first = article.firstElementChild;
  if (!first?.matches("h1, h2, h3, h4, h5, h6")) return [h("h1", { class: "unseen" }, "Memory"), article];
  first.remove();
  return [h("h1", { dir: "auto" }, ...first.childNodes), article];
}

const tab = (name, words) => h("button", { type: "button", class: "quiet", "aria-pressed": String(view === name), onclick: () => toggle(name) }, words);

export function toggle(name) {
  view = view === name ? "read" : name;
  read(open);
}

export async function copy() {
  await navigator.clipboard.writeText(open.content);
  toast("Copied");
}

// --- history --------------------------------------------------------------------------------------

const showHistory = () => tried(async () => {
  const { file, text } = open;
  const versions = await api.versions(file);
  if (open?.file !== file || view !== "history") return;
  byId("view")?.replaceChildren(versions.length ? h("ol", { class: "versions" }, versions.map((each) => version(each, each.text === text)))
    : h("p", { class: "hint" }, "There is no earlier version of it."));
});

function version({ what, time, machine, text, file, fields, words }, present) {
  return h("li", {},
    h("p", {}, h("b", {}, what), " ", time ? h("time", { title: exact(time) }, ago(time)) : null, machine ? `, from ${machine}` : "",
      present ? " — the present version" : text ? h("button", { type: "button", class: "link", onclick: () => bringBack({ [file]: text }) }, "Bring back") : null),
    fields.length ? h("dl", { class: "facts" }, fields.map(([name, before, after]) =>
      h("div", {}, h("dt", {}, FIELDS[name]), h("dd", { dir: "auto" }, ...change(before, after))))) : null,
    h("div", { class: "words", dir: "auto" }, words.flatMap(([before, after], at) => {
      if (before === after) return shortened(before, at > 0, at < words.length - 1);
      return words.length > 1 || before ? change(before, after) : after.slice(0, FIRST) + (after.length > FIRST ? "…" : "");
    })));
}

const FIELDS = { topics: "Topics", agent: "Agent", user: "About" };

// What went, and what came in its place.
function change(before, after) {
  return [before ? h("del", {}, before) : null, before && after ? " → " : null, after ? h("ins", {}, after) : null];
}

// What did not change: the words beside those that did.
function shortened(words, before, after) {
  if (words.length <= 2 * AROUND) return words;
  const [begins, ends] = [words.slice(0, AROUND), words.slice(-AROUND)];
  return [before ? begins : "", "…", after ? ends : ""].join(" ");
}

// Show a forgotten memory.
export function readForgotten({ title, text, file, time, machine }) {
  open = null;
  document.title = `Forgotten: ${visible(title)} · Memories`;
  byId("pane").setAttribute("aria-label", "Forgotten memory");
  byId("pane").replaceChildren(h("div", { class: "memory" },
    h("div", { class: "tools" },
      leaving(), h("span", { class: "gap" }),
      h("button", { type: "button", class: "main", onclick: () => bringBack({ [file]: text }) }, "Bring back")),
    h("h1", { dir: "auto" }, title),
    h("p", { class: "by" }, "Forgotten ", time ? h("time", { title: exact(time) }, ago(time)) : null, machine ? `, from ${machine}` : ""),
    h("pre", { class: "file", tabindex: "0", dir: "auto" }, text)));
}

// Do what the program may refuse, which is told then.
async function tried(work) {
  try {
    await work();
  } catch (error) {
    calls.fail(error);
  }
}

const bringBack = (texts) => tried(async () => {
  await api.restore(texts);
  toast("Brought back", null);
  calls.changed();
});

// --- what is done to several ------------------------------------------------------------------------

export const forgetOpen = () => forget({ files: [open.file], titles: [open.content.length > 200 ? `${open.content.slice(0, 199)}…` : open.content], count: 1 });

// Ask, and forget memories, of which the first are shown by their titles.
export async function forget({ count, titles, ...some }) {
  const shown = titles.slice(0, MOST_TITLES);
  const it = count === 1 ? "it" : "them";
  const sure = await confirm(count === 1 ? "Forget this memory?" : `Forget ${plural(count, "memory")}?`, [
    h("blockquote", {}, shown.map((each) => h("p", { dir: "auto" }, each || "(empty)")), count > shown.length ? h("p", {}, `… and ${(count - shown.length).toLocaleString()} more`) : null),
    h("p", {}, `No agent finds ${it} any more, on any of your machines.`),
    h("p", {}, standing?.sync
      ? `Undo brings ${it} back: the history still has ${it}${standing.remote ? ", here and in your copy, for whoever can read that" : ""}.`
      : "Sync is off: what the history does not have from before is gone for good once this page is closed."),
  ], "Forget");
  if (sure) await tried(async () => {
    if (count > SLOW) toast("Forgetting…");
    const { count: gone, undo, problem } = await api.forget(some);
    toast(problem || (count === 1 ? "Forgotten" : `${plural(gone, "memory")} forgotten`), () => takeBack(undo));
    calls.forgotten(some.files);
  });
}

const takeBack = (undo) => tried(async () => {
  const { restored } = await api.undo(undo);
  toast(restored === 1 ? "Brought back" : `${plural(restored, "memory")} brought back`, null);
  calls.changed();
});
