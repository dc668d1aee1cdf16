// The page. The text of a memory is inserted as text, except for the HTML that the server made safe
// (see `rendered`). The address holds the search and the open memory: `#q=words&file=name`.

const byId = (id) => document.getElementById(id);
const TOKEN = "aiaml-token";
const TYPING_MS = 150;
const POLL_MS = 60_000;
const TOAST_MS = 10_000;

let shown = { q: "", file: "" }; // what the page shows
let listed = ""; // the first page of the list, as JSON
let next = null; // where the next page of the list starts
let memory = null; // the one that is open
let opening = null; // a promise while it is being opened
let editor = null; // its text area while it is edited

// --- elements -------------------------------------------------------------------------------------

// Make an element: h("a", { href: "#", onclick }, "text", child).
function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

const button = (label, onclick, properties = {}) => h("button", { type: "button", onclick, ...properties }, label);

const policy = globalThis.trustedTypes?.createPolicy("safe-html", { createHTML: (html) => html });

// Only HTML that `safe_html` made on the server may come here.
function rendered(html) {
  const article = h("article", { dir: "auto" });
  article.innerHTML = policy ? policy.createHTML(html) : html;
  for (const link of article.querySelectorAll("a")) link.target = "_blank";
  return article;
}

// Return a text as nodes, with the words highlighted.
function highlighted(text, words) {
  if (!words.length) return [text];
  const longest = [...words].sort((a, b) => b.length - a.length);
  const escaped = longest.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(${escaped.join("|")})`, "giu"));
  return pieces.map((piece, index) => (index % 2 ? h("mark", {}, piece) : piece));
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function time(timestamp, format = DATE_TIME) {
  const date = new Date(timestamp);
  const text = Number.isNaN(date.valueOf()) ? timestamp : format.format(date);
  return h("time", { datetime: timestamp, title: timestamp }, text);
}

const plural = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`;

// --- the server -----------------------------------------------------------------------------------

class Problem extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status; // 0 if nobody answered
  }
}

// Ask the server. `version` is the expected version of the file; `null` means that there is no file.
async function ask(method, path, { version, text, signal } = {}) {
  const headers = { "X-AIAML-Token": sessionStorage.getItem(TOKEN) ?? "" };
  if (version) headers["If-Match"] = version;
  if (version === null) headers["If-None-Match"] = "*";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: text, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "`aiaml web` is no longer running. Start it again in a terminal.");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Problem(answer.status, value.error);
  return value;
}

const pathOf = (file) => `/api/memories/${encodeURIComponent(file.toWellFormed?.() ?? file)}`;

// Show the errors of an action in a toast.
function reportErrors(action) {
  return async (...words) => {
    try {
      return await action(...words);
    } catch (error) {
      if (error.name !== "AbortError") toast(error.message);
      return null;
    }
  };
}

// Take the token out of the address. It is behind `#`, which browsers do not send.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, "", location.pathname);
}

// --- the address ----------------------------------------------------------------------------------

function addressOf({ q = shown.q, file = shown.file }) {
  const words = new URLSearchParams();
  if (q) words.set("q", q);
  if (file) words.set("file", file);
  return `#${words}`;
}

function go(changes, { replace = false } = {}) {
  const address = addressOf(changes);
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return follow();
}

// Show what the address says.
const follow = reportErrors(async () => {
  takeToken();
  const words = new URLSearchParams(location.hash.slice(1));
  const wanted = { q: words.get("q") ?? "", file: words.get("file") ?? "" };
  if (wanted.file !== shown.file && !(await mayLeave())) {
    history.pushState(null, "", addressOf(shown));
    return;
  }
  const before = shown;
  shown = wanted;
  document.body.classList.toggle("searching", Boolean(shown.q));
  if (byId("search").value !== shown.q) byId("search").value = shown.q;
  if (shown.file !== before.file) await (opening = open(shown.file));
  if (shown.q !== before.q) await list();
});

// --- the list -------------------------------------------------------------------------------------

let listing = null;

async function list(from = 0) {
  listing?.abort();
  listing = new AbortController();
  const words = new URLSearchParams({ q: shown.q, from });
  let answer;
  try {
    answer = await ask("GET", `/api/memories?${words}`, { signal: listing.signal });
  } catch (error) {
    if (error.status === 400) byId("count").textContent = error.message;
    else if (error.name !== "AbortError") throw error;
    return;
  }
  const focused = document.activeElement?.dataset?.file;
  if (!from) {
    if (JSON.stringify([shown.q, answer]) === listed) return;
    listed = JSON.stringify([shown.q, answer]);
    byId("hits").replaceChildren();
    drawOverview(answer);
  }
  byId("count").textContent = countOf(answer);
  byId("hits").append(...answer.memories.map(row));
  next = answer.next;
  byId("more").hidden = next === null;
  markOpen();
  links().find((link) => link.dataset.file === focused)?.focus();
}

function countOf({ total, all }) {
  if (total) return plural(total, "memory", "memories");
  if (shown.q) return "No memory matches.";
  return all === 0 ? "No memories yet. Your agents add them, and so does `aiaml remember`." : "No memories";
}

function row(found) {
  const facts = h("small", {}, time(found.timestamp, DATE), ` · ${found.agent}`);
  const words = found.words;
  return h("li", {}, h(
    "a",
    { href: addressOf({ file: found.file }), "data-file": found.file, dir: "auto" },
    h("strong", {}, highlighted(found.title, words)),
    found.excerpt ? h("span", {}, highlighted(found.excerpt, words)) : null,
    facts,
  ));
}

const links = () => [...document.querySelectorAll("#hits a")];

function markOpen() {
  for (const link of links()) {
    if (link.dataset.file === shown.file) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// Open the next or the previous memory of the list.
function step(by) {
  const all = links();
  const at = all.findIndex((link) => link === document.activeElement || link.ariaCurrent === "true");
  const link = all[at < 0 ? 0 : at + by];
  if (!link) return;
  link.focus();
  go({ file: link.dataset.file }, { replace: Boolean(shown.file) });
}

// --- the overview ---------------------------------------------------------------------------------

const WORD = /(?:[^\s":]+:)?"[^"]*"?|\S+/g; // of a search
const same = (one, other) => one.toLowerCase() === other.toLowerCase();
const topicWord = (topic) => (/[\s"]/.test(topic) ? `topic:"${topic.replaceAll('"', "")}"` : `topic:${topic}`);
const wordsOf = (q) => q.match(WORD) ?? [];

function toggle(topic) {
  const word = topicWord(topic);
  const others = wordsOf(shown.q).filter((each) => !same(each, word));
  const isChosen = others.length < wordsOf(shown.q).length;
  go({ q: (isChosen ? others : [...others, word]).join(" "), file: "" });
}

function topicButton(topic, count = null) {
  const isChosen = wordsOf(shown.q).some((word) => same(word, topicWord(topic)));
  const number = count === null ? null : h("small", {}, ` ${count.toLocaleString()}`);
  const made = button(topic, () => toggle(topic), { "aria-pressed": isChosen, dir: "auto" });
  if (number) made.append(number);
  return h("li", {}, made);
}

function drawOverview({ topics, bars }) {
  byId("topics").replaceChildren(...topics.map(([topic, count]) => topicButton(topic, count)));
  byId("chart").replaceChildren(...chart(bars));
}

// Draw how many memories were made in each day, month or year. A click searches that time.
function chart(bars) {
  if (bars.length < 2) return [];
  const most = Math.max(...bars.map(([, count]) => count));
  const columns = bars.map(([label, count], index) => {
    const height = count ? Math.max(2, (60 * count) / most) : 0;
    const search = (event) => {
      event.preventDefault();
      during(label, bars[index + 1]?.[0]);
    };
    return svg(
      "a",
      { href: "#", tabindex: -1, onclick: search },
      svg("title", {}, `${dateOf(label)}: ${count}`),
      svg("rect", { class: "space", x: index * 10, y: 0, width: 10, height: 60 }),
      svg("rect", { class: "bar", x: index * 10 + 1, y: 60 - height, width: 8, height }),
    );
  });
  const [first, last] = [dateOf(bars[0][0]), dateOf(bars.at(-1)[0])];
  const label = `Memories over time, from ${first} to ${last}; at most ${most} in one bar`;
  const box = { viewBox: `0 0 ${bars.length * 10} 60`, preserveAspectRatio: "none", role: "img", "aria-label": label };
  const caption = h("figcaption", {}, h("span", {}, first), h("span", {}, last));
  return [h("h2", {}, "Over time"), svg("svg", box, columns), caption];
}

const firstDay = (label) => `${label}-01-01`.slice(0, 10); // of a day, month or year

function dateOf(label) {
  const [, month, day] = label.split("-");
  const format = { year: "numeric", month: month && "short", day: day && "numeric" };
  return new Date(`${firstDay(label)}T00:00`).toLocaleDateString(undefined, format);
}

function during(label, end) {
  const others = wordsOf(shown.q).filter((word) => !/^(since|before):/i.test(word));
  const before = end ? [`before:${firstDay(end)}`] : [];
  go({ q: [...others, `since:${firstDay(label)}`, ...before].join(" "), file: "" });
}

async function loadStatus() {
  const { base, sync, warnings, replaced } = await ask("GET", "/api/status");
  byId("sync").textContent = sync;
  byId("warnings").replaceChildren(...warnings.map((warning) => h("p", {}, warning)));
  byId("base").textContent = base;
  byId("replaced").replaceChildren(...related("Replaced by newer ones", replaced));
}

// List other memories, each with a button that forgets it.
function related(heading, memories) {
  if (!memories.length) return [];
  const items = memories.map((other) => h(
    "li",
    {},
    h("a", { href: addressOf({ file: other.file }), dir: "auto" }, other.title),
    h("small", {}, time(other.timestamp, DATE), other.by ? ` · replaced by ${other.by}` : ""),
    button("Forget…", () => forget(other.file), { "aria-label": `Forget ${other.title}` }),
  ));
  return [h("h2", {}, heading), h("ul", { class: "related" }, items)];
}

// --- one memory -----------------------------------------------------------------------------------

async function open(file) {
  editor = null;
  memory = null;
  document.body.classList.toggle("open", Boolean(file));
  byId("overview").hidden = Boolean(file);
  byId("reader").hidden = !file;
  byId("reader").replaceChildren();
  document.title = "Memories";
  markOpen();
  if (!file) return;
  try {
    const found = await ask("GET", pathOf(file));
    if (shown.file === file) draw(found);
  } catch (error) {
    if (shown.file !== file) return;
    byId("reader").replaceChildren(tools(), h("p", { class: "wrong", role: "alert" }, error.message));
  }
}

const close = () => go({ file: "" });

function tools(...buttons) {
  return h("nav", {}, button("← Back", close), buttons);
}

function draw(found) {
  memory = found;
  editor = null;
  document.title = found.title;
  const facts = ["by ", h("b", {}, found.agent), " about ", h("b", {}, found.user), ` · ${found.id}`];
  const invisible = found.invisible.length
    ? h("p", { class: "wrong" }, `Has invisible characters: ${found.invisible.join(" ")}`)
    : null;
  byId("reader").replaceChildren(
    tools(button("Edit", edit), button("Forget…", () => forget(found.file))),
    h("p", { class: "facts" }, time(found.timestamp), " ", facts),
    h("ul", { class: "topics" }, found.topics.map((topic) => topicButton(topic))),
    ...[invisible].filter(Boolean),
    rendered(found.html),
    versions(found.file),
    ...related("Similar memories", found.similar),
  );
  byId("reader").scrollTop = 0;
}

// The versions of a memory; each is fetched when it is opened.
function versions(file) {
  return lazy("Versions", async () => {
    const found = await ask("GET", `${pathOf(file)}/versions`);
    const items = found.map((version) => versionOf(file, version, version.action));
    return items.length ? items : [h("p", {}, "There are no versions in git yet.")];
  });
}

function versionOf(file, version, name) {
  return lazy([name, " · ", time(version.timestamp), ` · ${version.author}`], async () => {
    const whole = await ask("GET", `${pathOf(file)}/versions/${version.commit}`);
    const lines = whole.diff.map((line) => h({ "+": "ins", "-": "del" }[line[0]] ?? "span", {}, `${line}\n`));
    return [h("pre", { dir: "auto" }, lines), button("Restore this version", () => restore(file, whole.text))];
  });
}

// Make a section that is loaded each time it is opened.
function lazy(summary, load) {
  const content = h("div");
  const details = h("details", {}, h("summary", {}, summary), content);
  details.addEventListener("toggle", reportErrors(async () => {
    if (details.open) content.replaceChildren(...(await load()));
  }));
  return details;
}

const restore = reportErrors(async (file, text) => {
  const version = memory?.file === file ? memory.version : null;
  await ask("POST", `${pathOf(file)}/restore`, { version, text });
  toast("Restored.");
  await changed(file);
});

const forget = reportErrors(async (file) => {
  const found = await ask("GET", pathOf(file));
  const hint = byId("sync").textContent === "Sync is off"
    ? "Sync is off, so there is no history to restore it from."
    : "If it is committed, you can restore it under “Forgotten memories”.";
  if (!(await confirmed(`Forget “${found.title}”?`, hint, "Forget"))) return;
  const { kept } = await ask("DELETE", pathOf(file), { version: found.version });
  toast(kept ? "Forgotten." : "Forgotten. Git has no copy.", "Undo", () => restore(file, found.text));
  await changed(file === shown.file ? "" : shown.file);
});

// Reload everything after a change.
async function changed(file) {
  byId("forgotten").open = false;
  if (file === shown.file) await open(file);
  else await go({ file });
  await Promise.all([list(), loadStatus()]);
}

// --- the editor -----------------------------------------------------------------------------------

async function edit() {
  await opening;
  if (!memory || editor) return;
  editor = h("textarea", { "aria-label": "The text of the file", spellcheck: "true", dir: "auto" });
  editor.value = memory.text;
  editor.defaultValue = editor.value; // the browser has made all line ends "\n"
  byId("reader").replaceChildren(
    h("nav", {}, button("Save", save, { class: "main" }), button("Cancel", cancel)),
    h("p", { id: "wrong", class: "wrong", role: "alert" }),
    editor,
  );
  editor.setSelectionRange(0, 0);
  editor.focus({ preventScroll: true });
  byId("reader").scrollTop = 0;
}

const isChanged = () => editor !== null && editor.value !== editor.defaultValue;
const mayLeave = async () => !isChanged() || confirmed("Discard your changes?", "They are not saved.", "Discard");

async function cancel() {
  if (await mayLeave()) draw(memory);
}

async function save() {
  if (!isChanged()) {
    draw(memory);
    return;
  }
  const lineEnd = memory.text.includes("\r\n") ? "\r\n" : "\n";
  const text = editor.value.replaceAll("\n", lineEnd);
  try {
    draw(await ask("PUT", pathOf(memory.file), { version: memory.version, text }));
    toast("Saved.");
    await Promise.all([list(), loadStatus()]);
  } catch (error) {
    byId("wrong").textContent = error.message;
    if (error.status === 412) await showOther();
  }
}

// The file was changed by another program: show its text. Saving again replaces it.
async function showOther() {
  memory = await ask("GET", pathOf(memory.file));
  byId("wrong").replaceChildren(
    "The file was changed meanwhile. Save again to replace what it holds now:",
    h("pre", { dir: "auto" }, memory.text),
  );
}

// --- dialog, toast and keys -----------------------------------------------------------------------

function confirmed(title, text, yes) {
  const dialog = byId("question");
  byId("question-title").textContent = title;
  byId("question-text").textContent = text;
  byId("question-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

let toasting = 0;

function toast(text, label = "", action = null) {
  const undo = label ? button(label, () => { toast(""); action(); }) : null;
  byId("toast").replaceChildren(text, ...[undo].filter(Boolean));
  clearTimeout(toasting);
  toasting = setTimeout(() => byId("toast").replaceChildren(), TOAST_MS);
}

function escape() {
  if (editor) cancel();
  else if (shown.file) close();
  else if (shown.q) go({ q: "" });
}

const KEYS = {
  "/": () => byId("search").focus(),
  j: () => step(1),
  k: () => step(-1),
  e: edit,
  d: () => shown.file && forget(shown.file),
  Escape: escape,
};

addEventListener("keydown", (event) => {
  if (byId("question").open || event.altKey) return;
  const isCommand = event.ctrlKey || event.metaKey;
  const isTyping = event.target.closest("input, textarea");
  if (isCommand && event.key === "s" && editor) {
    event.preventDefault();
    save();
  } else if (!isCommand && KEYS[event.key] && (!isTyping || event.key === "Escape")) {
    if (editor && event.key !== "Escape") return;
    event.preventDefault();
    if (isTyping) event.target.blur();
    KEYS[event.key]();
  }
});

// --- start ----------------------------------------------------------------------------------------

// Check for changes: when the page gets the focus, and once a minute.
const poll = reportErrors(async () => {
  if (document.hidden || !sessionStorage.getItem(TOKEN)) return;
  await Promise.all([list(), loadStatus()]);
  if (!memory || editor) return;
  const found = await ask("GET", pathOf(memory.file));
  if (!editor && found.file === memory?.file && found.version !== memory.version) draw(found);
});

const start = reportErrors(async () => {
  takeToken();
  if (!sessionStorage.getItem(TOKEN)) {
    byId("count").textContent = "Open the address that `aiaml web` printed in the terminal.";
    return;
  }
  await follow();
  if (!listed) await list();
  await loadStatus();
});

let typing = 0;
byId("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => go({ q: byId("search").value, file: shown.file }, { replace: true }), TYPING_MS);
});
byId("more").addEventListener("click", reportErrors(() => list(next)));
byId("home").addEventListener("click", (event) => {
  event.preventDefault();
  go({ q: "", file: "" });
});
byId("forgotten").replaceWith(
  Object.assign(lazy("Forgotten memories", async () => {
    const found = await ask("GET", "/api/forgotten");
    const items = found.map((gone) => versionOf(gone.file, gone.version, gone.title));
    return items.length ? items : [h("p", {}, "There are no forgotten memories in git.")];
  }), { id: "forgotten" }),
);
addEventListener("popstate", () => (sessionStorage.getItem(TOKEN) ? follow() : start()));
addEventListener("focus", poll);
document.addEventListener("visibilitychange", poll);
setInterval(poll, POLL_MS);
addEventListener("beforeunload", (event) => {
  if (isChanged()) event.preventDefault();
});
start();
