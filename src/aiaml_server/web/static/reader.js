// One memory in the pane: read, its file, its history; forgotten ones too.

import * as api from "./api.js";
import { confirm, toast } from "./dialogs.js";
import * as editor from "./editor.js";
import { ago, byId, exact, h, placed, plural, rendered, usesOf, visible } from "./elements.js";
import { standing } from "./sync.js";

const MOST_TITLES = 8; // that are shown before several are forgotten
const SLOW = 100; // memories that are not forgotten at once

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
  pane.setAttribute("aria-label", "Memory");
  pane.replaceChildren(h("div", { class: "memory" },
    h("div", { class: "tools" },
      h("button", { type: "button", class: "back", onclick: () => calls.close() }, "Close"),
      h("span", { class: "gap" }),
      memory.new ? h("button", { type: "button", class: "set", onclick: () => see({ files: { [memory.file]: memory.version } }) }, "Seen") : null,
      tab("file", "File"), tab("history", "History"),
      h("button", { type: "button", onclick: copy }, "Copy"),
      h("button", { type: "button", class: "roomy", onclick: () => print() }, "Print"),
      h("button", { type: "button", onclick: () => editor.edit(open) }, "Edit"),
      h("button", { type: "button", class: "danger", onclick: () => forgetOpen() }, "Forget…")),
    h("h1", { dir: "auto" }, memory.title || "(empty)"),
    h("p", { class: "by" }, h("time", { title: exact(memory.timestamp) }, ago(memory.timestamp)),
      " · ", memory.agent || "(nobody)", " about ", memory.user || "(nobody)",
      memory.until ? h("span", { class: memory.expired ? "over" : "" }, ` · ${memory.expired ? "expired, " : ""}until ${memory.until}`) : null,
      memory.uses ? h("span", { class: "uses" }, ` · ${usesOf(memory.uses)}`) : null),
    h("p", { class: "tags" }, memory.topics.map((topic) => h("button", { type: "button", class: "tag", title: "Filter by this topic", onclick: () => calls.topic(topic) }, topic))),
    h("div", { id: "view" }, body(memory)),
    h("p", { class: "place" }, h("code", {}, memory.id), " in ", h("code", {}, placed(memory)))));
  pane.scrollTop = at;
  if (view === "history") showHistory();
}

function body(memory) {
  if (view === "file") return h("pre", { class: "file", tabindex: "0", dir: "auto" }, memory.text);
  if (view === "history") return h("p", { class: "hint" }, "Looking…");
  return untitled(rendered(memory.html), memory.title);
}

// Take away a first heading or line that only says the title again.
function untitled(article, title) {
  const first = article.firstElementChild;
  if (first && !first.childElementCount && first.matches("h1, h2, h3, h4, h5, h6, p") && first.textContent.trim() === title) first.remove();
  return article;
}

const tab = (name, words) => h("button", { type: "button", "aria-pressed": String(view === name), onclick: () => toggle(name) }, words);

export function toggle(name) {
  view = view === name ? "read" : name;
  read(open);
}

export async function copy() {
  await navigator.clipboard.writeText(open.content);
  toast("Copied");
}

// --- history --------------------------------------------------------------------------------------

async function showHistory() {
  const { file, text } = open;
  try {
    const versions = await api.versions(file);
    if (open?.file !== file || view !== "history") return;
    byId("view")?.replaceChildren(versions.length ? h("ol", { class: "versions" }, versions.map((each) => version(each, each.text === text)))
      : h("p", { class: "hint" }, "Git knows no earlier version of it."));
  } catch (error) {
    calls.fail(error);
  }
}

function version({ what, time, machine, text, file, difference }, present) {
  const again = async () => {
    try {
      await api.restore({ [file]: text });
      toast("Brought back", null);
      calls.changed(file);
    } catch (error) {
      calls.fail(error);
    }
  };
  return h("li", {},
    h("p", {}, h("b", {}, what), " ", time ? h("time", { title: exact(time) }, ago(time)) : null, machine ? `, from ${machine}` : "",
      present ? " — as it is now" : text ? h("button", { type: "button", class: "link", onclick: again }, "Bring back") : null),
    h("pre", { class: "difference", tabindex: "0" }, difference.map((line) =>
      h(line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span", {}, `${line}\n`))));
}

// Show a forgotten memory.
export function readForgotten({ title, text, file, time, machine }) {
  open = null;
  document.title = `Forgotten: ${visible(title)} · Memories`;
  byId("pane").setAttribute("aria-label", "Forgotten memory");
  byId("pane").replaceChildren(h("div", { class: "memory" },
    h("div", { class: "tools" },
      h("button", { type: "button", class: "back", onclick: () => calls.close() }, "Close"), h("span", { class: "gap" }),
      h("button", { type: "button", class: "main", onclick: () => bringBack({ [file]: text }) }, "Bring back")),
    h("h1", { dir: "auto" }, title),
    h("p", { class: "by" }, "Forgotten ", time ? h("time", { title: exact(time) }, ago(time)) : null, machine ? `, from ${machine}` : ""),
    h("pre", { class: "file", tabindex: "0" }, text)));
}

export async function bringBack(texts) {
  try {
    await api.restore(texts);
    toast("Brought back", null);
    calls.changed();
  } catch (error) {
    calls.fail(error);
  }
}

// --- what is done to several ------------------------------------------------------------------------

export const forgetOpen = () => forget({ files: [open.file], titles: [shortened(open.content)], count: 1 });

// Ask, and forget memories, of which the first are shown by their titles.
export async function forget({ count, titles, ...some }) {
  const shown = titles.slice(0, MOST_TITLES);
  const sure = await confirm(count === 1 ? "Forget this memory?" : `Forget ${plural(count, "memory")}?`, [
    h("blockquote", {}, shown.map((each) => h("p", {}, each || "(empty)")), count > shown.length ? h("p", {}, `… and ${(count - shown.length).toLocaleString()} more`) : null),
    h("p", {}, `No agent finds ${count === 1 ? "it" : "them"} any more, on none of your machines.`),
    h("p", {}, standing?.sync
      ? "Git's history, here and in your remote, still has it, and whoever has the repository can read it."
      : "Sync is off: what git does not have from before is gone for good once this page is closed."),
  ], "Forget");
  if (!sure) return;
  try {
    if (count > SLOW) toast("Forgetting…");
    const { count: gone, undo, problem } = await api.forget(some);
    toast(problem || (count === 1 ? "Forgotten" : `${plural(gone, "memory")} forgotten`), () => takeBack(undo));
    calls.forgotten(some.files);
  } catch (error) {
    calls.fail(error);
  }
}

async function takeBack(undo) {
  try {
    const { restored } = await api.undo(undo);
    toast(restored === 1 ? "Brought back" : `${plural(restored, "memory")} brought back`, null);
    calls.changed();
  } catch (error) {
    calls.fail(error);
  }
}

// Note that the person has seen memories.
export async function see(some) {
  try {
    toast(`${plural((await api.see(some)).seen, "memory")} marked as seen`);
    calls.changed();
  } catch (error) {
    calls.fail(error);
  }
}

const shortened = (words) => (words.length > 200 ? `${words.slice(0, 199)}…` : words);
