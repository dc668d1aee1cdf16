// The page: what is asked for stands in the address, the list and the pane follow it.

import * as api from "./api.js";
import { byId, h, marked, plural, visible, when } from "./elements.js";
import { overview, showSync } from "./overview.js";
import * as reader from "./reader.js";

const TYPING = 90; // milliseconds without a key before a search is asked
const LOOK = 20_000; // milliseconds between two looks at sync, while the page is seen

const state = { q: "", agent: "", user: "", topics: [], since: "", until: "", open: "" };
let following = null; // where the next page of the list begins
let counts = null; // the overview
let asking = new AbortController(); // the list that is under way
let counting = new AbortController();
let opening = new AbortController();

// --- the address ----------------------------------------------------------------------------------

function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of ["q", "agent", "user", "since", "until", "open"]) state[name] = words.get(name) ?? "";
  state.topics = words.getAll("topic");
}

function words({ q = state.q, open = "" } = {}) {
  const found = new URLSearchParams();
  const { agent, user, since, until } = state;
  for (const [name, value] of Object.entries({ q, agent, user, since, until, open })) {
    if (value) found.set(name, value);
  }
  for (const topic of state.topics) found.append("topic", topic);
  return found;
}

const address = (open) => `#${words({ open })}`;

// --- the list -------------------------------------------------------------------------------------

async function list() {
  asking.abort();
  asking = new AbortController();
  const keep = document.activeElement?.closest?.("#hits a")?.dataset.file;
  await guarded(async (signal) => {
    const { memories, next, total } = await api.memories(words(), signal);
    byId("hits").replaceChildren(...memories.map(item));
    following = next;
    counted(total);
    mark();
    if (keep) link(keep)?.focus();
  }, asking);
}

async function more() {
  const from = words();
  from.set("from", following);
  await guarded(async (signal) => {
    const { memories, next } = await api.memories(from, signal);
    const added = memories.filter(({ file }) => !link(file)).map(item);
    byId("hits").append(...added);
    following = next;
    byId("more").hidden = following == null;
    added[0]?.firstElementChild.focus();
  }, asking);
}

function counted(total) {
  byId("more").hidden = following == null;
  byId("count").textContent = inWords(total);
}

function inWords(total) {
  if (state.q.trim()) {
    if (!total) return "No memory holds any of these words";
    return total === 25 ? "The 25 best" : `${plural(total, "memory")} found, best first`;
  }
  if (!total) return filtered() ? "No memory is like that" : "No memories yet";
  return `${plural(total, "memory")}, newest first`;
}

const filtered = () => state.agent || state.user || state.since || state.until || state.topics.length;

function item(memory) {
  const { file, timestamp, agent, user, topics, title, excerpt, score, keywords } = memory;
  return h("li", {}, h("a", { href: address(file), "data-file": file },
    h("span", { class: "head" },
      h("time", {}, when(timestamp)), ` ${agent}, about ${user}`,
      score ? h("span", { class: "score", title: `Score ${score}: ${keywords.join(", ")}` }, String(score)) : null),
    h("span", { class: "excerpt" }, marked([title, excerpt].filter(Boolean).join(" · "), keywords)),
    h("span", { class: "foot" }, topics.map((topic) => h("span", { class: "tag" }, marked(topic, keywords))))));
}

const link = (file) => byId("hits").querySelector(`a[data-file="${CSS.escape(file)}"]`);

function mark() {
  for (const each of byId("hits").querySelectorAll("a")) {
    if (each.dataset.file === state.open) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
    each.setAttribute("href", address(each.dataset.file));
  }
}

// --- filters --------------------------------------------------------------------------------------

async function count() {
  counting.abort();
  counting = new AbortController();
  await guarded(async (signal) => {
    counts = await api.overview(words({ q: "" }), signal);
    choices();
    if (!state.open) showOverview();
  }, counting);
}

function choices() {
  fill(byId("agent"), counts.agents, state.agent);
  fill(byId("user"), counts.users, state.user);
  fill(byId("topic"), counts.topics.filter(([name]) => !has(name)), "", "Any");
  byId("since").value = state.since;
  byId("until").value = state.until && shifted(state.until, -1);
  byId("chips").replaceChildren(
    ...state.topics.map((name) => h("button", { type: "button", class: "tag chip", "aria-label": `Without the topic ${name}`, onclick: () => toggleTopic(name) }, name, h("span", { "aria-hidden": "true" }, "×"))),
    ...(filtered() ? [h("button", { type: "button", class: "link", onclick: clear }, "Clear filters")] : []));
  byId("filters-toggle").classList.toggle("set", Boolean(filtered()));
}

function fill(select, names, chosen) {
  const same = (name) => name.toLowerCase() === chosen.toLowerCase();
  const options = names.filter(([name]) => name).map(([name, number]) =>
    h("option", { value: name, selected: same(name) && chosen !== "" }, `${name} (${number.toLocaleString()})`));
  if (chosen && !names.some(([name]) => same(name))) options.push(h("option", { value: chosen, selected: true }, chosen));
  select.replaceChildren(h("option", { value: "" }, "Any"), ...options);
}

const has = (topic) => state.topics.some((each) => each.toLowerCase() === topic.toLowerCase());

function shifted(day, by) {
  const moment = new Date(`${day}T12:00Z`);
  moment.setUTCDate(moment.getUTCDate() + by);
  return Number.isNaN(moment.valueOf()) ? "" : moment.toISOString().slice(0, 10);
}

function toggleTopic(name) {
  const lower = name.toLowerCase();
  filter({ topics: has(name) ? state.topics.filter((each) => each.toLowerCase() !== lower) : [...state.topics, name] });
}

const toggle = (field) => (name) => filter({ [field]: state[field] === name ? "" : name });

function time(since, until) {
  const same = state.since === since && state.until === until;
  filter(same ? { since: "", until: "" } : { since, until });
}

const clear = () => filter({ agent: "", user: "", topics: [], since: "", until: "" });

function filter(changes) {
  Object.assign(state, changes);
  history.pushState(null, "", address(state.open));
  list();
  count();
}

// --- the pane -------------------------------------------------------------------------------------

function showOverview() {
  reader.closed();
  byId("pane").setAttribute("aria-label", "Overview");
  if (!counts) return byId("pane").replaceChildren(h("p", { class: "hint wait" }, "Counting…"));
  const at = byId("pane").scrollTop;
  overview(byId("pane"), counts, state, { time, topic: toggleTopic, agent: toggle("agent"), user: toggle("user") });
  byId("pane").scrollTop = at;
}

// Open a memory, or with "" the overview; an editor with changes is left only when told to.
async function go(file, { replace = false } = {}) {
  if (!await reader.leave()) return;
  state.open = file;
  history[replace ? "replaceState" : "pushState"](null, "", address(file));
  await show();
}

// Where there is room for one column, say which: the pane or the list.
function onPhone(pane) {
  document.body.classList.toggle("open", pane);
  byId("overview-toggle").setAttribute("aria-pressed", String(pane && !state.open));
}

async function show() {
  opening.abort();
  opening = new AbortController();
  mark();
  onPhone(Boolean(state.open));
  if (!state.open) return showOverview();
  await guarded(async (signal) => {
    reader.read(await api.memory(state.open, signal));
    byId("pane").focus({ preventScroll: true });
  }, opening);
}

// --- what goes wrong ------------------------------------------------------------------------------

async function guarded(work, controller) {
  try {
    await work(controller.signal);
    byId("banner").hidden = true;
  } catch (error) {
    if (error.name !== "AbortError" && !controller.signal.aborted) fail(error);
  }
}

function fail(error) {
  byId("banner").hidden = false;
  byId("banner").textContent = visible(error.message);
}

function toast(text) {
  byId("toast").textContent = visible(text);
  byId("toast").classList.add("on");
  setTimeout(() => byId("toast").classList.remove("on"), 4000);
}

// --- keys -----------------------------------------------------------------------------------------

const KEYS = {
  "/": () => byId("search").select(),
  "?": () => byId("keys").showModal(),
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1), // in the pane, arrows scroll
  ArrowUp: () => step(-1),
  e: () => reader.current() && reader.edit(),
  r: () => reader.current() && reader.toggleRaw(),
  Escape: () => back(),
};

function step(by) {
  const links = [...byId("hits").querySelectorAll("a")];
  const at = links.findIndex((each) => each === document.activeElement);
  const from = at >= 0 ? at : links.findIndex((each) => each.dataset.file === state.open);
  const next = links[Math.min(Math.max(from + by, 0), links.length - 1)];
  if (!next) return;
  if (!state.open) return next.focus();
  next.scrollIntoView({ block: "nearest" });
  go(next.dataset.file, { replace: true });
}

function back() {
  if (document.querySelector(".editor")) return reader.leave();
  if (state.open) return close();
  byId("search").value = "";
  search();
}

async function close() {
  const file = state.open;
  await go("");
  link(file)?.focus();
}

function pressed(event) {
  if (document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && document.querySelector(".editor")) {
    event.preventDefault();
    return reader.save();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input, textarea, select");
  const inSearch = field?.id === "search";
  if (field && event.key !== "Escape" && !(inSearch && event.key === "ArrowDown")) return;
  const act = KEYS[event.key];
  if (!act || (event.key.startsWith("Arrow") && event.target.closest("#pane"))) return;
  event.preventDefault();
  act();
}

// --- start ----------------------------------------------------------------------------------------

let typing = 0;

function search() {
  clearTimeout(typing);
  state.q = byId("search").value;
  history.replaceState(null, "", address(state.open));
  list();
  if (!document.querySelector(".list").offsetParent) uncover();
}

// On a phone, whoever searches wants to see what is found.
async function uncover() {
  if (state.open) await go("");
  if (!state.open) onPhone(false);
}

async function look() {
  if (document.hidden) return;
  try {
    showSync(await api.status());
  } catch (error) {
    fail(error);
  }
}

// What others did meanwhile is shown when the page is looked at again.
function seenAgain() {
  look();
  if (document.hidden || document.querySelector(".editor")) return;
  if (byId("hits").children.length <= 50) list();
  count();
}

async function moved() {
  if (api.takeToken()) byId("banner").hidden = true;
  if (!await reader.leave()) return history.pushState(null, "", address(state.open));
  fromAddress();
  byId("search").value = state.q;
  list();
  count();
  await show();
}

function listen() {
  reader.start({
    changed: () => { toast("Saved"); list(); count(); },
    forgotten: (file, said) => { toast(said); reader.closed(); link(file)?.parentElement.remove(); go("", { replace: true }); list(); count(); },
    close, fail, topic: toggleTopic,
  });
  byId("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, TYPING); });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") byId("hits").querySelector("a")?.click();
  });
  byId("hits").addEventListener("click", (event) => {
    const file = event.target.closest("a")?.dataset.file;
    if (!file || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(file);
  });
  byId("more").addEventListener("click", more);
  byId("home").addEventListener("click", () => go(""));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("agent").addEventListener("change", (event) => filter({ agent: event.target.value }));
  byId("user").addEventListener("change", (event) => filter({ user: event.target.value }));
  byId("topic").addEventListener("change", (event) => toggleTopic(event.target.value));
  byId("since").addEventListener("change", (event) => filter({ since: event.target.value }));
  byId("until").addEventListener("change", (event) => filter({ until: event.target.value && shifted(event.target.value, 1) }));
  byId("filters-toggle").addEventListener("click", () => {
    const shown = byId("filters").classList.toggle("shown");
    byId("filters-toggle").setAttribute("aria-expanded", String(shown));
  });
  byId("overview-toggle").addEventListener("click", async () => {
    const seen = Boolean(document.body.classList.contains("open") && !state.open);
    await go("");
    onPhone(!seen);
    showOverview(); // its width is known only now
  });
  byId("keys-open").addEventListener("click", () => byId("keys").showModal());
  byId("sync").addEventListener("click", () => { look(); byId("sync-dialog").showModal(); });
  document.addEventListener("keydown", pressed);
  document.addEventListener("visibilitychange", seenAgain);
  addEventListener("popstate", moved);
  addEventListener("beforeunload", (event) => { if (reader.dirty()) event.preventDefault(); });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width && !state.open && counts) showOverview();
    width = innerWidth;
  });
  setInterval(look, LOOK);
}

api.takeToken();
listen();
moved();
look();
