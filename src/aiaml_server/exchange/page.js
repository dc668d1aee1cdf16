"use strict";
const box = document.getElementById("search");
const count = document.getElementById("count");
const memories = Array.from(document.querySelectorAll("article"));
let texts;

function search() {
  texts ??= memories.map((memory) => memory.textContent.toLowerCase());
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  memories.forEach((memory, number) => {
    memory.hidden = !words.every((word) => texts[number].includes(word));
    shown += memory.hidden ? 0 : 1;
  });
  count.textContent = words.length ? `${shown} of ${memories.length}` : `${memories.length}`;
}

box.hidden = false;
box.addEventListener("input", search);
document.addEventListener("click", (event) => {
  if (!event.target.matches(".topic")) return;
  box.value = event.target.textContent;
  search();
  scrollTo(0, 0);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  } else if (event.key === "Escape" && document.activeElement === box) {
    box.value = "";
    search();
  }
});
if (box.value) search();
