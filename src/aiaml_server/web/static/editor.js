// A memory being written: its fields, or its file, with how it will look.

import * as api from "./api.js";
import { confirm, toast } from "./dialogs.js";
import { byId, h, invisible, placed, rendered } from "./elements.js";

const TYPING = 250; // milliseconds without a key before the preview follows
let calls = null;
let now = null; // {memory, raw, from, version}; memory is null for a new one
let asking = new AbortController();
let typing = 0;

export const start = (given) => { calls = given; };
export const dirty = () => Boolean(now && form() && said() !== now.from);
const form = () => document.querySelector(".editor");

// Write a new memory; `user` is whom it is likely about. It is by the same author as one of `aiaml remember`.
export const create = (user) => open({ agent: "human", user, topics: [], content: "" }, null, false);
export const edit = (memory, raw = false) => open(memory, memory, raw);

function open(words, memory, raw) {
  now = { memory, raw, version: memory?.version };
  byId("pane").setAttribute("aria-label", memory ? "Edit a memory" : "New memory");
  byId("pane").replaceChildren(h("form", {
    class: "memory editor", onsubmit: (event) => { event.preventDefault(); save(); }, oninput: () => { clearTimeout(typing); typing = setTimeout(look, TYPING); },
  },
    h("div", { class: "tools" },
      h("button", { type: "button", class: "quiet", onclick: () => leave() }, "Cancel"),
      h("span", { class: "gap" }),
      memory ? tab("Fields", !raw, false) : null, memory ? tab("File", raw, true) : null,
      h("button", { type: "submit", class: "main" }, "Save")),
    h("h1", { class: "unseen" }, memory ? `Edit: ${memory.title}` : "New memory"),
    raw ? rawFields(memory) : fields(words),
    unseen(memory?.text ?? ""),
    h("div", { id: "trouble", role: "alert" }),
    h("section", { class: "preview", "aria-label": "Preview", hidden: true }, h("h2", {}, "Preview"), h("div", { id: "preview" }))));
  now.from = said();
  const first = byId("text");
  first.focus();
  first.setSelectionRange?.(0, 0);
  look();
}

const tab = (words, chosen, raw) => h("button", { type: "button", class: "quiet", "aria-pressed": String(chosen), onclick: () => {
  if (dirty()) toast("Save or cancel first");
  else if (!chosen) edit(now.memory, raw);
} }, words);

function fields({ agent, user, topics, content }) {
  return [
    field("content", area(content)),
    h("div", { class: "fields" }, field("topics", input(topics.join(", "))), field("agent", input(agent)), field("user", input(user))),
  ];
}

// A field with its name, and room for what is wrong with it.
function field(name, control) {
  const { id, label } = FIELDS[name];
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-wrong`);
  return h("span", { class: "field" }, h("label", { for: id }, label), control, h("span", { id: `${id}-wrong`, class: "wrong" }));
}

const input = (value) => h("input", { value, autocomplete: "off", dir: "auto" });

function rawFields(memory) {
  return [
    h("label", { for: "text" }, placed(memory)),
    area(memory.text),
    h("p", { class: "hint" }, "The whole file: the lines between the two --- say whose and what about, the rest is markdown. The id must stay."),
  ];
}

function area(value) {
  const made = h("textarea", { id: "text", spellcheck: "true", dir: "auto" });
  made.value = value;
  return made;
}

// Warn of what a text field does not show.
function unseen(text) {
  const found = invisible(text);
  return found.length ? h("p", { class: "hint" }, `It holds characters that cannot be seen here: ${found.slice(0, 9).join(" ")}. File shows where they stand.`) : null;
}

const value = (id) => byId(id)?.value ?? "";
const said = () => Object.values(FIELDS).map(({ id }) => value(id)).join("\0");

function words() {
  const before = now.memory?.topics ?? [];
  const typed = value("topics");
  const topics = typed === before.join(", ") ? before : typed.split(/[,\s]+/).filter(Boolean);
  return { agent: value("edit-agent"), user: value("edit-user"), topics, content: value("text") };
}

async function look() {
  asking.abort();
  asking = new AbortController();
  const text = value("text");
  const content = now?.raw ? text.split(/\n---[ \t]*\n/).slice(1).join("\n---\n") : text;
  try {
    const { html } = await api.preview(content, asking.signal);
    byId("preview")?.replaceChildren(rendered(html));
    byId("preview")?.parentElement.toggleAttribute("hidden", !html.trim());
  } catch (error) {
    if (error.name !== "AbortError") say(error.message);
  }
}

// Leave, asking when something would be lost; say whether it was left.
export async function leave() {
  if (dirty() && !await confirm("Discard your changes?", [h("p", {}, "The memory stays as it was.")], "Discard")) return false;
  const left = now && form() ? now : null;
  now = null;
  if (left?.memory) {
    calls.read(left.memory);
    byId("pane").focus({ preventScroll: true });
  } else if (left) {
    byId("pane").replaceChildren();
    calls.close();
  }
  return true;
}

export async function save() {
  const { memory, version, raw } = now;
  if (memory && !dirty()) return leave();
  byId("trouble").replaceChildren();
  wrong([]);
  try {
    const stored = !memory ? await api.store(words())
      : raw ? await api.edit(memory.file, version, value("text")) : await api.editWords(memory.file, version, words());
    now = null;
    calls.saved(stored, () => takeBack(memory, stored));
  } catch (error) {
    if (error.status === 412) await conflict(error);
    else {
      const fields = raw ? [] : Object.keys(FIELDS).filter((field) => field in (error.fields ?? {}));
      wrong(fields);
      say(fields.length ? `see ${fields.map((field) => FIELDS[field].label).join(", ")}.` : error.message);
    }
  }
}

// The fields by their names in a file: the control, its label, and what is right for it.
const FIELDS = {
  content: { id: "text", label: "What to remember", right: "Write what to remember, at most 1 MiB." },
  topics: { id: "topics", label: "Topics", right: "A word to find it by, or up to 32 with commas between, such as: garden, dog." },
  agent: { id: "edit-agent", label: "Agent", right: "Who says so: a name on one line." },
  user: { id: "edit-user", label: "About", right: "Whom it is about: a name on one line." },
};

// Mark the fields that are wrong, and those alone; go to the first.
function wrong(fields) {
  for (const [field, { id, right }] of Object.entries(FIELDS)) {
    const isWrong = fields.includes(field);
    if (isWrong) byId(id)?.setAttribute("aria-invalid", "true");
    else byId(id)?.removeAttribute("aria-invalid");
    byId(`${id}-wrong`)?.replaceChildren(isWrong ? right : "");
  }
  byId(FIELDS[fields[0]]?.id)?.focus();
}

// Take back what was saved, as long as nobody has changed it since.
async function takeBack(before, stored) {
  try {
    if (before) await api.edit(stored.file, stored.version, before.text);
    else await api.remove(stored.file, stored.version);
    toast(before ? "As it was before" : "Forgotten", null);
    calls.undone(stored.file, before);
  } catch (error) {
    calls.fail(error);
  }
}

function say(...children) {
  byId("trouble")?.replaceChildren(h("p", { class: "trouble" }, "Not saved: ", ...children));
}

// Somebody else changed the file: show how it stands; the next save puts ours in its place.
async function conflict() {
  try {
    const there = await api.memory(now.memory.file);
    now.version = there.version;
    say("somebody changed this memory meanwhile. Below is how it stands now; saving again puts your text in its place.");
    byId("trouble").append(h("pre", { class: "file", tabindex: "0" }, there.text));
  } catch (error) {
    say(error.message);
  }
}
