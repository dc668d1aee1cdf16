// One memory in the pane: read, its file, edit, forget.

import * as api from "./api.js";
import { byId, h, invisible, moment, rendered } from "./elements.js";
import { standing } from "./overview.js";

let open = null; // the memory that is shown, as the server gave it
let editor = null; // its editor: {area, version}
let raw = false; // whether its file is shown
let calls = null; // what the page does: changed(), forgotten(file, words), close(), topic(name), fail(error)

export const start = (given) => { calls = given; };
export const current = () => open;
export const dirty = () => Boolean(editor && editor.area.value !== editor.from);

// Show a memory for reading.
export function read(memory) {
  open = memory;
  editor = null;
  const pane = byId("pane");
  pane.setAttribute("aria-label", "Memory");
  pane.replaceChildren(h("div", { class: "memory" },
    bar(
      h("button", { type: "button", onclick: () => edit() }, "Edit"),
      h("button", { type: "button", "aria-pressed": String(raw), onclick: () => toggleRaw() }, "File"),
      h("button", { type: "button", class: "danger", onclick: () => forget() }, "Forget…")),
    h("h1", {}, moment(memory.timestamp)),
    h("p", { class: "by" }, h("b", {}, memory.agent || "(nobody)"), " about ", h("b", {}, memory.user || "(nobody)")),
    h("p", { class: "tags" }, memory.topics.map((topic) => h("button", { type: "button", class: "tag", title: "Filter by this topic", onclick: () => calls.topic(topic) }, topic))),
    raw ? h("pre", { class: "file" }, memory.text) : rendered(memory.html),
    h("p", { class: "place" }, h("code", {}, memory.id), " in ", h("code", {}, `files/${memory.file}`))));
  pane.scrollTop = 0;
}

export function closed() {
  open = editor = null;
}

export function toggleRaw() {
  raw = !raw;
  read(open);
}

function bar(...buttons) {
  return h("div", { class: "tools" },
    h("button", { type: "button", class: "back", onclick: () => calls.close() }, "Close"),
    h("span", { class: "gap" }), buttons);
}

// --- edit -----------------------------------------------------------------------------------------

export function edit() {
  const area = h("textarea", { id: "text", spellcheck: "true", "aria-describedby": "edit-hint" });
  area.value = open.text;
  editor = { area, from: area.value, version: open.version };
  const trouble = h("div", { id: "trouble", role: "alert" });
  byId("pane").setAttribute("aria-label", "Edit a memory");
  byId("pane").replaceChildren(h("form", {
    class: "memory editor", onsubmit: (event) => { event.preventDefault(); save(); },
  },
    h("div", { class: "tools" },
      h("button", { type: "button", onclick: () => leave() }, "Cancel"),
      h("span", { class: "gap" }),
      h("button", { type: "submit", class: "main" }, "Save")),
    h("label", { for: "text" }, `files/${open.file}`),
    area, unseen(open.text), trouble,
    h("p", { class: "hint", id: "edit-hint" }, "The whole file: the lines between the two --- say whose and what about, the rest is markdown. The id must stay.")));
  area.focus();
  area.setSelectionRange(0, 0);
}

// Warn of what a text field does not show.
function unseen(text) {
  const found = invisible(text);
  return found.length ? h("p", { class: "hint" }, `It holds characters that cannot be seen here: ${found.slice(0, 9).join(" ")}. File shows where they stand.`) : null;
}

// Leave the editor, asking when something would be lost; say whether it was left.
export async function leave() {
  if (dirty() && !await confirm("Discard your changes?", [h("p", {}, "The memory stays as it was.")], "Discard")) return false;
  if (editor) read(open);
  return true;
}

export async function save() {
  if (!dirty()) return read(open);
  const { area, version } = editor;
  byId("trouble").replaceChildren();
  try {
    const memory = await api.edit(open.file, version, area.value);
    read(memory);
    calls.changed();
  } catch (error) {
    if (error.status === 412) await conflict(error);
    else say(error.message);
  }
}

function say(...children) {
  byId("trouble").replaceChildren(h("p", { class: "trouble" }, "Not saved: ", ...children));
}

// Somebody else changed the file: show how it stands; the next save puts ours in its place.
async function conflict() {
  try {
    const now = await api.memory(open.file);
    editor.version = now.version;
    say("somebody changed this memory meanwhile. Below is how it stands now; saving again puts your text in its place.");
    byId("trouble").append(h("pre", { class: "file" }, now.text));
  } catch (error) {
    say(error.message);
  }
}

// --- forget ---------------------------------------------------------------------------------------

export async function forget() {
  const { id, file, version, text } = open;
  const words = text.split("\n---\n").slice(1).join("\n---\n").trim() || text;
  const sure = await confirm("Forget this memory?", [
    h("blockquote", {}, words.length > 200 ? `${words.slice(0, 199)}…` : words),
    h("p", {}, "Its file is deleted, and no agent finds it any more, on none of your machines."),
    h("p", {}, ...(standing?.sync ? [
      "Git's history, here and in your remote, still has it: ", h("code", {}, `aiaml restore ${id}`),
      " brings it back, and whoever has the repository can read it.",
    ] : ["Sync is off: what git does not have from before is gone for good."])),
  ], "Forget");
  if (!sure) return;
  try {
    const { kept } = await api.forget(file, version);
    calls.forgotten(file, kept ? `Forgotten; aiaml restore ${id} brings it back` : "Forgotten");
  } catch (error) {
    calls.fail(error);
  }
}

export function confirm(question, text, yes) {
  const dialog = byId("ask");
  byId("ask-title").textContent = question;
  byId("ask-text").replaceChildren(...text);
  byId("ask-yes").textContent = yes;
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onsubmit = (event) => resolve(event.submitter.value === "yes");
    dialog.oncancel = () => resolve(false);
  });
}
