// Elements, made of what the server said. Every string enters the page as text; the one exception
// is the HTML of a rendered memory, which the server made safe (see `rendered`).

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

// Make an element: `h("a", { href: "#", class: "tag", onclick }, "text", child)`.
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

// Make an element of a picture.
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, SEEN.has(name) ? visible(value) : value);
  }
  const there = children.flat().filter((child) => child != null && child !== false);
  element.append(...there.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

const SEEN = new Set(["title", "aria-label"]); // attributes that a person reads

// --- characters that nobody sees ------------------------------------------------------------------
// A model reads them like any other, so they are shown as their code points: the same ones, by the
// same rules, as in `invisible.py`.

const SET = "\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufff9-\\ufffb\\u{13430}-\\u{1343f}\\p{Cs}\\p{Default_Ignorable_Code_Point}";
const INVISIBLE = new RegExp(`\\r\\n|[${SET}]`, "gu");
const IS_INVISIBLE = new RegExp(`[${SET}]`, "u");

// A text with its invisible characters as code points.
export const visible = (text) => text.replace(INVISIBLE, mark);

function mark(character, start, text) {
  if (character === "\r\n") return "\n";
  const [after = ""] = text.slice(start + character.length, start + character.length + 2);
  const before = [...text.slice(Math.max(0, start - 2), start)].at(-1) ?? "";
  return belongs(character, before, after) ? character : codePoint(character);
}

function codePoint(character) {
  return `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;
}

// Whether it is part of the visible character before it: a joiner, or a form of an emoji or ideograph.
function belongs(character, before, after) {
  if (!before) return false;
  if (/[\u200c\u200d]/.test(character)) return (/[\ufe0e\ufe0f]/.test(before) || joins(before)) && joins(after);
  if (/[\ufe0e\ufe0f]/.test(character)) return after === "\u20e3" || (before > "\x7f" && /[\p{S}\p{P}]/u.test(before));
  return /[\u{e0100}-\u{e01ef}]/u.test(character) && /\p{Ideographic}/u.test(before);
}

const joins = (character) => character >= "\u0600" && /[\p{L}\p{M}\p{S}]/u.test(character) && !IS_INVISIBLE.test(character);

// The different invisible characters of a text, as code points.
export function invisible(text) {
  const shown = visible(text.replaceAll("\r", ""));
  return [...new Set(text.match(INVISIBLE) ?? [])].map(codePoint).filter((each) => shown.includes(each));
}

// The words of a text, marked where one of them is a keyword.
export function marked(text, keywords) {
  if (!keywords.length) return [text];
  const longest = [...keywords].sort((a, b) => b.length - a.length);
  const escaped = longest.map((each) => each.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(?<![\\p{L}\\p{N}_])(${escaped.join("|")})(?![\\p{L}\\p{N}_])`, "giu"));
  return pieces.map((piece, number) => (number % 2 ? h("mark", {}, piece) : piece));
}

const policy = globalThis.trustedTypes?.createPolicy("safe-html", { createHTML: (html) => html });

// A memory's markdown, which `safe_html` on the server turned into HTML without scripts, styles,
// pictures or raw HTML. Nothing else may come here.
export function rendered(html) {
  const article = h("article", { class: "rendered", dir: "auto" });
  article.innerHTML = policy ? policy.createHTML(html) : html;
  for (const link of article.querySelectorAll("a")) link.target = "_blank";
  return article;
}

// --- time -----------------------------------------------------------------------------------------

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const THIS_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { style: "short", numeric: "auto" });
const UNITS = [["minute", 60], ["hour", 3600], ["day", 86_400]];
const OLD = 7; // days, after which a date says more

function parsed(timestamp) {
  const moment = new Date(/^\d{4}-\d\d-\d\d$/.test(timestamp) ? `${timestamp}T00:00` : timestamp);
  return Number.isNaN(moment.valueOf()) ? null : moment;
}

// A moment in full; what is no time stands as it is written.
export function moment(timestamp) {
  const found = parsed(timestamp);
  return found ? MOMENT.format(found) : timestamp;
}

// The same with what the file says, for whoever wants to know exactly.
export const exact = (timestamp) => `${moment(timestamp)} (${timestamp})`;

// How long ago, or the date.
export function ago(timestamp) {
  const found = parsed(timestamp);
  if (!found) return timestamp;
  const seconds = (found - Date.now()) / 1000;
  const near = found.getFullYear() === new Date().getFullYear() ? THIS_YEAR : DAY;
  if (seconds > 60 || seconds < -OLD * 86_400) return near.format(found);
  if (seconds > -60) return "now";
  const [unit, length] = UNITS.findLast(([, length]) => -seconds >= length);
  return RELATIVE.format(Math.ceil(seconds / length), unit);
}

// Where a memory's file is.
export const placed = ({ file }) => `files/${file}`;

// A line to copy, with a button that does.
export function copyable(line) {
  const button = h("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(line);
    button.textContent = "Copied";
  } }, "Copy");
  return h("p", { class: "copyable" }, h("code", {}, line), button);
}

export function plural(count, noun, nouns = noun.replace(/y$/, "ie") + "s") {
  return `${count.toLocaleString()} ${count === 1 ? noun : nouns}`;
}
