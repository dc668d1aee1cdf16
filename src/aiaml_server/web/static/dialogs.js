// What lies above the page: a question, a sentence that goes by itself, a file to keep.

import { byId, h } from "./elements.js";

const SEEN = 4000; // milliseconds
const UNDO = 12_000;
let hiding = 0;

// Ask; say whether the answer was yes.
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

// Say something for some seconds; with `undo`, have a button for it beside.
export function toast(text, undo = null) {
  const box = byId("toast");
  box.replaceChildren(h("span", {}, text),
    undo ? h("button", { type: "button", onclick: () => { hide(); undo(); } }, "Undo") : "");
  box.classList.add("on");
  clearTimeout(hiding);
  hiding = setTimeout(hide, undo ? UNDO : SEEN);
}

// Undo what the last sentence offers to undo.
export const undoLast = () => byId("toast").classList.contains("on") && byId("toast").querySelector("button")?.click();

const hide = () => byId("toast").classList.remove("on");

// Have the browser keep a text as a file.
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
