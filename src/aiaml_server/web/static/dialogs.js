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

let last = null; // takes the last change back, until the next one

// Say something for some seconds; of a change, with a button beside for what takes it back.
export function toast(text, undo = undefined) {
  const box = byId("toast");
  if (undo !== undefined) last = undo;
  box.replaceChildren(h("span", {}, text), undo ? h("button", { type: "button", onclick: undoLast }, "Undo") : "");
  box.classList.add("on");
  clearTimeout(hiding);
  hiding = setTimeout(hide, undo ? UNDO : SEEN);
}

// Take the last change back, also long after it was made.
export function undoLast() {
  const undo = last;
  last = null;
  hide();
  if (undo) undo();
  else toast("Nothing to undo");
}

const hide = () => byId("toast").classList.remove("on");

// Have the browser keep a text as a file.
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
