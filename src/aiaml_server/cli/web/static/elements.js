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
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// The words of a text, the keywords in them marked.
export function marked(text, keywords) {
  if (!keywords.length) return [text];
  const longest = [...keywords].sort((a, b) => b.length - a.length);
  const escaped = longest.map((each) => each.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(${escaped.join("|")})`, "giu"));
  return pieces.map((piece, number) => (number % 2 ? h("mark", {}, piece) : piece));
}

const policy = globalThis.trustedTypes?.createPolicy("safe-html", { createHTML: (html) => html });

// A memory's markdown, which `safe_html` on the server turned into HTML without scripts, styles,
// pictures or raw HTML. Nothing else may come here.
export function rendered(html) {
  const article = h("article", { class: "rendered" });
  article.innerHTML = policy ? policy.createHTML(html) : html;
  for (const link of article.querySelectorAll("a")) link.target = "_blank";
  return article;
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short" });

// A memory's time for people; what is no time stands as it is written.
export function when(timestamp, format = DAY) {
  const moment = new Date(/^\d{4}-\d\d-\d\d$/.test(timestamp) ? `${timestamp}T00:00` : timestamp);
  return Number.isNaN(moment.valueOf()) ? timestamp : format.format(moment);
}

export const moment = (timestamp) => when(timestamp, MOMENT);

export function plural(count, noun, nouns = noun.replace(/y$/, "ie") + "s") {
  return `${count.toLocaleString()} ${count === 1 ? noun : nouns}`;
}
