// The page: what is asked for stands in the address, the list and the pane follow it, and both
// follow what happens to the memories.

import * as api from "./api.js";
import { download, toast, undoLast } from "./dialogs.js";
import * as editor from "./editor.js";
import { byId, copyable, h, plural, visible } from "./elements.js";
import * as list from "./list.js";
import { overview } from "./overview.js";
import { divided, typed, valueOf, withField, withTopic } from "./query.js";
import * as reader from "./reader.js";
import { showSync, standing } from "./sync.js";

const TYPING = 90; // milliseconds without a key before a search is asked
const AGAIN = 20_000; // milliseconds before a broken connection is tried again
const CALM = 300; // milliseconds in which what happens is shown as one

const THEME = "aiaml-theme";

const state = { words: "", chips: [], open: "", forgotten: false };
let rows = []; // what is listed
let inAll = 0; // how many there are, also of those that are not listed
let following = null; // where the next page of the list begins
let counts = null; // the overview
let lately = [];
let asking = new AbortController(); // the list that is under way
let wished = 0; // rows, when more were asked for; what is stored meanwhile has the list made anew
let counting = new AbortController();
let opening = new AbortController();
let opened = Promise.resolve(); // when the pane shows what was opened last

// --- the address ----------------------------------------------------------------------------------

const question = () => [...state.chips, state.words.trim()].filter(Boolean).join(" ");

function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const { chips, rest } = divided(words.get("q") ?? "");
  Object.assign(state, { chips, words: rest, open: words.get("open") ?? "", forgotten: words.has("forgotten") });
}

function address(open) {
  const words = new URLSearchParams();
  if (question()) words.set("q", question());
  if (open) words.set("open", open);
  if (state.forgotten) words.set("forgotten", "");
  return `#${words}`;
}

// --- the list -------------------------------------------------------------------------------------

let listing = Promise.resolve(); // when the list shows what was asked last
const listed = (how) => (listing = askList(how));

async function askList({ fresh = false } = {}) {
  asking.abort();
  asking = new AbortController();
  if (state.forgotten) return listForgotten();
  const before = rows.length;
  if (!fresh) wished = 0;
  const wanted = fresh ? Math.max(before, wished) : 0; // as many as there were
  await guarded(async (signal) => {
    let found = await page(0, signal);
    const all = found.memories;
    while (found.next != null && all.length < wanted) all.push(...(found = await page(found.next, signal)).memories);
    show(all, found, fresh);
    if (wanted > before) list.link(all[before]?.file ?? "")?.focus();
  }, asking);
}

const asked = (more = {}) => new URLSearchParams({ q: question(), ...more });
const page = (from, signal) => api.memories(asked({ from }), signal);

function show(memories, { next, total, apart }, fresh = false) {
  rows = memories;
  inAll = total;
  following = next;
  list.fill(rows, { fresh, address, more: next != null, choice: !state.forgotten, empty: wayOn(apart) });
  tell();
  list.mark(state.open, address);
}

// How many there are, above the list and wherever it is said.
function tell() {
  const narrowed = question() && !state.forgotten;
  const all = narrowed && counts ? Math.max(counts.all, inAll) : inAll;
  const number = inAll < all ? `${inAll.toLocaleString()} of ${plural(all, "memory")}` : plural(inAll, "memory");
  byId("count").textContent = state.forgotten ? plural(inAll, "forgotten memory") : number;
  byId("order").textContent = inAll < 2 ? "" : state.words.trim() && !state.forgotten ? "best first" : "newest first";
}

// What stands where no memory does, with what can be done about it.
function wayOn(apart = 0) {
  const button = (words, act) => h("button", { type: "button", onclick: act }, words);
  const words = state.words.trim();
  const clear = (text) => { byId("search").value = text; search(); byId("search").focus(); };
  if (state.forgotten) return [h("p", {}, "Nothing was forgotten so far."), button("All memories", () => only({ forgotten: false }))];
  if (!words && !state.chips.length) return [h("p", {}, "No memories yet. Agents store them here; connect those on this computer once, in a terminal:"),
    copyable("aiaml install --all"), h("p", {}, "Or write the first one yourself."), button("New memory", create)];
  return [
    h("p", {}, apart ? `None has these words side by side; ${plural(apart, "memory")} ${apart === 1 ? "has" : "have"} all of them.`
      : words ? "No memory holds any of these words." : "No memory is like that."),
    apart ? button("Search without the quotes", () => clear(words.replaceAll('"', ""))) : null,
    words ? button("Clear search", () => clear("")) : null,
    state.chips.length ? button("Clear filters", () => filter([])) : null,
  ];
}

async function more() {
  wished = rows.length + 1;
  await guarded(async (signal) => {
    const found = await page(following, signal);
    const added = found.memories.filter(({ file }) => !list.link(file));
    show([...rows, ...added], found);
    list.link(added[0]?.file ?? "")?.focus();
  }, asking);
}

async function listForgotten() {
  await guarded(async (signal) => {
    const gone = await api.forgotten(signal);
    show(gone.map((each) => ({ ...each, timestamp: each.time ?? "", agent: each.agent ?? "", user: "", topics: [], excerpt: each.file })), { total: gone.length });
  }, asking);
}

// --- filters --------------------------------------------------------------------------------------

async function count() {
  counting.abort();
  counting = new AbortController();
  await guarded(async (signal) => {
    counts = await api.overview(asked(), signal);
    choices();
    tell();
    if (!state.open) showOverview();
  }, counting);
}

async function remembered() {
  try {
    lately = await api.lately();
    if (!state.open && counts) showOverview();
  } catch (error) {
    if (error.status !== 503) fail(error); // without git, nothing is remembered
  }
}

function choices() {
  fill(byId("agent"), counts.agents, valueOf(state.chips, "agent"));
  fill(byId("user"), counts.users, valueOf(state.chips, "user"));
  fill(byId("topic"), counts.topics, "");
  byId("since").value = dated(valueOf(state.chips, "since"));
  byId("before").value = shifted(dated(valueOf(state.chips, "before")), -1);
  pressed();
}

function pressed() {
  byId("forgotten").setAttribute("aria-pressed", String(state.forgotten));
}

function chips() {
  byId("chips").replaceChildren(...state.chips.map((each, at) => h("button", {
    type: "button", class: "chip", "aria-label": `${each} × remove`, onclick: () => filter(state.chips.filter((_, other) => other !== at)),
  }, each, h("span", { "aria-hidden": "true" }, " ×"))));
  byId("search-box").classList.toggle("chosen", state.chips.length > 0);
}

function fill(select, names, chosen) {
  const same = (name) => name.toLowerCase() === chosen.toLowerCase();
  const options = names.filter(([name]) => name).map(([name, number]) =>
    h("option", { value: name, selected: same(name) && chosen !== "" }, `${name} (${number.toLocaleString()})`));
  if (chosen && !names.some(([name]) => same(name))) options.push(h("option", { value: chosen, selected: true }, chosen));
  select.replaceChildren(h("option", { value: "" }, "Any"), ...options);
}

const dated = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? text : "");

function shifted(day, by) {
  const moment = new Date(`${day}T12:00Z`);
  moment.setUTCDate(moment.getUTCDate() + by);
  return Number.isNaN(moment.valueOf()) ? "" : moment.toISOString().slice(0, 10);
}

const toggled = (field) => (name) => filter(withField(state.chips, field, valueOf(state.chips, field).toLowerCase() === name.toLowerCase() ? "" : name));
const topic = (name) => filter(withTopic(state.chips, name));

function time(since, until) {
  const same = valueOf(state.chips, "since") === since && valueOf(state.chips, "before") === until;
  filter(withField(withField(state.chips, "since", same ? "" : since), "before", same ? "" : until));
}

function filter(changed) {
  state.chips = changed;
  state.forgotten = false;
  list.askedAnew();
  history.pushState(null, "", address(state.open));
  chips();
  listed();
  count();
}

// List only what is forgotten; or all again.
async function only(changed) {
  Object.assign(state, changed);
  list.clear();
  pressed();
  await go("");
  listed();
}

// --- the pane -------------------------------------------------------------------------------------

function showOverview() {
  if (document.querySelector(".editor")) return;
  reader.closed();
  byId("pane").setAttribute("aria-label", "Overview");
  if (!counts) return byId("pane").replaceChildren(h("p", { class: "hint wait" }, "Counting…"));
  const at = byId("pane").scrollTop;
  overview(byId("pane"), counts, question() ? [] : lately, state.chips, byId("count").textContent, { time, topic, agent: toggled("agent"), user: toggled("user"), open: go, close: () => onPhone(false) });
  byId("pane").scrollTop = at;
}

// Open a memory, or with "" the overview; an editor with changes is left only when told to.
async function go(file, { replace = false } = {}) {
  if (!await editor.leave()) return;
  state.open = file;
  history[replace ? "replaceState" : "pushState"](null, "", address(file));
  await shown();
}

// Where there is room for one column, say which: the pane or the list.
function onPhone(pane) {
  document.body.classList.toggle("open", pane);
}

const shown = () => (opened = showOpen());

// Wait until the pane shows what was opened last: a key is about that, never about what stood there before.
async function settled() {
  for (let last; last !== opened;) await (last = opened);
}

async function showOpen() {
  opening.abort();
  opening = new AbortController();
  list.mark(state.open, address);
  onPhone(Boolean(state.open));
  if (!state.open) return showOverview();
  const row = state.forgotten && rows.find(({ file }) => file === state.open);
  if (row) return reader.readForgotten(row);
  await guarded(async (signal) => {
    const memory = await api.memory(state.open, signal);
    if (!await editor.leave() || signal.aborted) return; // it was opened by a button meanwhile
    reader.read(memory);
    byId("pane").focus({ preventScroll: true });
  }, opening);
}

// Show the overview, also where there is room for one column.
async function pictures() {
  await go("");
  if (state.open || byId("pane").offsetParent) return;
  onPhone(true);
  showOverview(); // its width is known only now
}

async function close() {
  const file = state.open;
  await go("");
  list.link(file)?.focus();
}

async function create() {
  await settled();
  if (!await editor.leave()) return;
  onPhone(true);
  editor.create(standing?.me ?? "");
}

// --- what happens meanwhile -----------------------------------------------------------------------

let seen = []; // the numbers that were told last
let calm = 0;
let stream = new AbortController();
let begin = null; // called with the first of them, before there is anything to be made anew

async function follow() {
  while (!document.hidden) {
    const { signal } = stream = new AbortController();
    try {
      await api.listen(told, signal);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      if (error.status !== 503) fail(error);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
    if (signal.aborted) return;
    seen = [];
  }
}

function told(memories, status) {
  if (seen[1] !== status) sync().then(remembered);
  if (begin) begin();
  else if (seen[0] !== memories) calm ||= setTimeout(() => { calm = 0; again(); }, CALM);
  seen = [memories, status];
}

// Show how things are now.
async function again() {
  listed({ fresh: true });
  count();
  remembered();
  const open = reader.current();
  const still = () => open && reader.current() === open && open.file === state.open;
  if (!still()) return;
  try {
    const now = await api.memory(open.file);
    if (still() && now.version !== open.version) reader.read(now);
  } catch (error) {
    if (error.status !== 404) return fail(error);
    if (!still()) return; // forgotten here just now, which can be undone, or another is being opened
    toast("This memory was forgotten meanwhile");
    go("", { replace: true });
  }
}

async function sync() {
  try {
    showSync(await api.status(), syncNow, chooseRemote);
  } catch (error) {
    fail(error);
  }
}

async function syncNow() {
  toast("Trying…");
  try {
    const status = await api.sync();
    showSync(status, syncNow, chooseRemote);
    toast(status.problem ? "It still fails" : "Copied");
  } catch (error) {
    fail(error);
  }
}

// Return why an address is not taken, and whether a yes has it taken all the same; nothing where it is.
async function chooseRemote(address, yes) {
  try {
    const { said } = await api.chooseRemote(address, yes);
    showSync(await api.status(), syncNow, chooseRemote);
    toast(said.split("\n").at(-1));
    return ["", false];
  } catch (error) {
    return [error.message, Boolean(error.fields.yes)];
  }
}

function looked() {
  if (document.hidden) return stream.abort();
  seen = [];
  follow();
}

// --- what goes wrong ------------------------------------------------------------------------------

async function guarded(work, controller = new AbortController()) {
  try {
    await work(controller.signal);
    byId("banner").hidden = true;
  } catch (error) {
    if (error.name === "AbortError" || controller.signal.aborted) return;
    if (error.status === 400) { // while one types
      list.fill([], { address, more: false, empty: h("p", { role: "status" }, error.message) });
      byId("count").textContent = "";
    }
    else fail(error);
  }
}

function fail(error) {
  if (error.status === 403) {
    api.dropToken();
    return door();
  }
  byId("banner").hidden = false;
  byId("banner").textContent = visible(error.message);
}

// The page of whoever has no token: one sentence, and a field.
function door() {
  if (document.querySelector(".door")) return;
  stream.abort();
  document.body.className = "closed";
  byId("main").replaceChildren(h("form", { class: "door", onsubmit: (event) => {
    event.preventDefault();
    const [, token] = byId("address").value.split("token=");
    if (!token) return byId("address").select();
    location.hash = `token=${token.trim()}`;
    location.reload();
  } },
    h("h1", {}, "This page opens with its address"),
    h("p", { id: "door-hint" }, "Paste the address that ", h("code", {}, "aiaml web"), " printed in the terminal; it holds a password that is new at each start."),
    h("label", { for: "address" }, "Address"),
    h("input", { id: "address", type: "text", autocomplete: "off", spellcheck: "false", placeholder: `${location.origin}/#token=…`, "aria-describedby": "door-hint" }),
    h("button", { type: "submit", class: "main" }, "Open")));
  byId("address").focus();
}

// --- keys -----------------------------------------------------------------------------------------

const onOpen = (act) => async () => {
  await settled();
  if (reader.current()) act(reader.current());
};

const KEYS = [
  ["/", "search", () => byId("search").select()],
  ["j", "next memory (or ↓)", () => step(1)],
  ["k", "previous memory (or ↑)", () => step(-1)],
  ["Enter", "open", null],
  ["o", "overview of what is listed", pictures],
  ["n", "new memory", create],
  ["e", "edit what is open", onOpen((memory) => editor.edit(memory))],
  ["r", "its file, as it stands", onOpen(() => reader.toggle("file"))],
  ["h", "its history", onOpen(() => reader.toggle("history"))],
  ["c", "copy it", onOpen(() => reader.copy())],
  ["d", "forget it, or what is selected", () => forget()],
  ["u", "undo the last change", undoLast],
  ["x", "select, or not", () => { const file = here()?.dataset.file; if (file && !state.forgotten) list.toggle(file); }],
  ["a", "select all that is found", () => state.forgotten || list.selectAll(inAll)],
  ["f", "filters", () => filters()],
  ["t", "theme: light, dark, as the system", () => theme()],
  ["p", "print what is open", () => print()],
  ["Ctrl s", "save", null],
  ["Esc", "close, or clear the selection and the search", null],
  ["?", "these keys", () => byId("keys").showModal()],
];
const ACTS = { ...Object.fromEntries(KEYS.map(([key, , act]) => [key, act])), ArrowDown: () => step(1), ArrowUp: () => step(-1), Escape: () => back() };

const here = () => document.activeElement?.closest?.("#hits a") ?? list.link(state.open);

function step(by) {
  const links = list.links();
  const at = links.findIndex((each) => each === document.activeElement);
  const from = at >= 0 ? at : links.findIndex((each) => each.dataset.file === state.open);
  const next = links[Math.min(Math.max(from + by, 0), links.length - 1)];
  if (!next) return;
  if (!state.open) return next.focus();
  next.scrollIntoView({ block: "nearest" });
  go(next.dataset.file, { replace: true });
}

function back() {
  if (document.activeElement === byId("search")) byId("search").blur(); // the next key is no word
  if (document.activeElement?.closest("#filters")) {
    filters(false);
    return byId("filters-toggle").focus();
  }
  if (document.querySelector(".editor")) return editor.leave();
  if (list.selection().count) return list.clear();
  if (state.open) return close();
  if (document.body.classList.contains("open")) return onPhone(false);
  everything();
}

// List all memories again.
function everything() {
  byId("search").value = "";
  state.chips = [];
  state.forgotten = false;
  chips();
  pressed();
  search();
}

// What a key or a button is about: all that is found, what is selected, or what is open or has the focus.
async function some() {
  await settled();
  if (list.selection().whole) {
    const words = asked();
    return { words, ...await api.chosen(words) };
  }
  const open = reader.current();
  const one = open?.file ?? document.activeElement?.closest?.("#hits a")?.dataset.file;
  const files = list.selected.size ? [...list.selected] : [one].filter(Boolean);
  const known = [...rows, ...(open ? [open] : [])];
  const its = files.map((file) => known.find((each) => each.file === file));
  return { files, count: files.length, titles: its.map(({ title }) => title) };
}

async function forget() {
  if (state.forgotten) return;
  await settled();
  if (!list.selection().count && reader.current()) return reader.forgetOpen();
  await guarded(async () => {
    const those = await some();
    if (those.count) await reader.forget(those);
  });
}

async function exported() {
  await guarded(async () => {
    const { lines, gone } = await api.exported(await some());
    if (lines) download("memories.jsonl", lines);
    if (gone) toast(lines ? `Exported, but for ${plural(gone, "memory")} that ${gone === 1 ? "is" : "are"} gone meanwhile` : "Nothing exported: what was selected is gone meanwhile");
  });
}

function typedKey(event) {
  if (document.querySelector("dialog[open], :popover-open") || document.body.className === "closed") return;
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && document.querySelector(".editor")) {
    event.preventDefault();
    return editor.save();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input, textarea, select");
  const inSearch = field?.id === "search";
  if (inSearch && event.key === "Backspace" && !field.value && state.chips.length) return filter(state.chips.slice(0, -1));
  if (field && event.key !== "Escape" && !(inSearch && event.key === "ArrowDown")) return;
  const act = ACTS[event.key];
  if (!act || (event.key.startsWith("Arrow") && event.target.closest("#pane"))) return;
  event.preventDefault();
  act();
}

function filters(open = byId("filters").hidden) {
  byId("filters").hidden = !open;
  byId("filters-toggle").setAttribute("aria-expanded", String(open));
  if (open) byId("agent").focus();
}

function theme() {
  const next = { "": "light", light: "dark", dark: "" }[document.documentElement.dataset.theme ?? ""];
  localStorage.setItem(THEME, next);
  showTheme();
}

function showTheme() {
  const theme = document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "";
  const button = document.querySelector("#menu [data-key='t']");
  if (button) button.firstChild.textContent = `Theme: ${theme || "as the system"}`;
}

// --- start ----------------------------------------------------------------------------------------

let typing = 0;

function search() {
  clearTimeout(typing);
  const field = byId("search");
  const found = typed(field.value);
  if (found.chips.length) {
    field.value = found.rest;
    state.words = found.rest;
    return filter([...state.chips, ...found.chips]);
  }
  state.words = field.value;
  if (field.value) state.forgotten = false; // what is gone is not searched
  pressed();
  list.askedAnew();
  history.replaceState(null, "", address(state.open));
  count();
  if (!document.querySelector(".list").offsetParent) uncover();
  return listed();
}

// Whoever presses Enter has typed all of it, and means what is found of that.
async function entered() {
  const field = byId("search");
  const fields = divided(field.value).chips.length;
  if (fields) field.value += " ";
  if (fields || field.value !== state.words) await search();
  else await listing;
  if (!fields) byId("hits").querySelector("a")?.click();
}

// On a phone, whoever searches wants to see what is found.
async function uncover() {
  if (state.open) await go("");
  if (!state.open) onPhone(false);
}

async function moved() {
  api.takeToken();
  if (!await editor.leave()) return history.pushState(null, "", address(state.open));
  fromAddress();
  byId("search").value = state.words;
  chips();
  listed().then(() => state.forgotten && shown());
  count();
  await shown();
}

function furnish() {
  const item = (words, key) => h("button", { type: "button", class: "quiet", "data-key": key, popovertarget: "menu", popovertargetaction: "hide", onclick: () => ACTS[key]() }, h("span", {}, words), h("kbd", { "aria-hidden": "true" }, key));
  byId("menu").replaceChildren(item("Overview", "o"), item("Undo", "u"), item("Theme", "t"), item("Keys", "?"));
  byId("keys-list").replaceChildren(...KEYS.map(([key, words]) => h("div", {}, h("dt", {}, key.split(" ").map((each) => h("kbd", {}, each))), h("dd", {}, words))));
  byId("selection").replaceChildren(h("span", {}),
    h("button", { type: "button", onclick: exported }, "Export"),
    h("button", { type: "button", class: "danger", onclick: () => forget() }, "Forget…"),
    h("button", { type: "button", onclick: list.clear }, "Clear"));
}

function clicked(event) {
  const file = event.target.closest("a")?.dataset.file;
  if (!file || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (event.shiftKey) list.extend(file);
  else go(file);
}

function changed() {
  if (state.forgotten) { // what was brought back is among the others again
    state.forgotten = false;
    history.replaceState(null, "", address(state.open));
  }
  listed({ fresh: true });
  count();
  remembered();
  if (state.open) shown();
}

function listenTo() {
  reader.start({
    changed, close, fail, topic,
    saved: (memory, undo) => { toast("Saved", undo); state.open = memory.file; history.replaceState(null, "", address(state.open)); reader.read(memory); byId("pane").focus({ preventScroll: true }); listed({ fresh: true }); count(); },
    undone: (file, before) => { if (state.open === file && !before) { reader.closed(); go("", { replace: true }); } changed(); },
    forgotten: (files) => { list.clear(); if (!files || files.includes(state.open)) { reader.closed(); go("", { replace: true }); } listed({ fresh: true }); count(); remembered(); },
  });
  byId("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, TYPING); });
  byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") entered(); });
  byId("hits").addEventListener("click", clicked);
  byId("more").addEventListener("click", more);
  byId("all").addEventListener("click", () => list.selectAll(inAll));
  byId("home").addEventListener("click", () => { everything(); pictures(); });
  byId("new").addEventListener("click", create);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("agent").addEventListener("change", (event) => filter(withField(state.chips, "agent", event.target.value)));
  byId("user").addEventListener("change", (event) => filter(withField(state.chips, "user", event.target.value)));
  byId("topic").addEventListener("change", (event) => event.target.value && topic(event.target.value));
  byId("since").addEventListener("change", (event) => filter(withField(state.chips, "since", event.target.value)));
  byId("before").addEventListener("change", (event) => filter(withField(state.chips, "before", event.target.value && shifted(event.target.value, 1))));
  byId("forgotten").addEventListener("click", () => only({ forgotten: !state.forgotten }));
  byId("filters-toggle").addEventListener("click", () => filters());
  byId("sync").addEventListener("click", () => { sync(); byId("sync-dialog").showModal(); });
  document.addEventListener("keydown", typedKey);
  document.addEventListener("visibilitychange", looked);
  addEventListener("popstate", moved);
  addEventListener("storage", showTheme); // chosen in another tab
  addEventListener("beforeunload", (event) => { if (editor.dirty()) event.preventDefault(); });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width && !state.open && counts) showOverview();
    width = innerWidth;
  });
}

furnish();
showTheme();
listenTo();
if (await api.hasToken()) {
  fromAddress();
  const begun = new Promise((resolve) => { begin = resolve; });
  follow();
  await Promise.race([begun, new Promise((resolve) => setTimeout(resolve, CALM))]);
  begin = null;
  await moved();
} else {
  door();
}
