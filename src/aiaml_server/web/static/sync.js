// How sync stands, in plain words.

import { ago, byId, h, moment, plural } from "./elements.js";

let remote = null; // the form for its address, the same until there is one: what is typed in it stays

export let standing = null; // how the directory stood when it was last asked

// Show how the directory stands: in short, with its facts, and, where no copy is made, in a sentence;
// `again` tries to make one, and `choose` returns why an address cannot be where copies are kept.
export function showSync(status, again, choose) {
  standing = status;
  const failing = status.sync && status.problem;
  byId("uncopied").hidden = !failing;
  if (failing) byId("uncopied").replaceChildren(h("span", {}, uncopied(status)), h("button", { type: "button", onclick: again }, "Try again"));
  const [kind, words] = inShort(status);
  const button = byId("sync");
  button.className = `quiet ${kind}`;
  button.lastElementChild.textContent = words;
  if (status.remote && !status.on_one_disk) remote = null;
  else remote ??= remoteForm(choose);
  byId("sync-facts").replaceChildren(...facts(status));
}

function uncopied({ failing_since: since, ahead }) {
  const waiting = ahead ? `: ${plural(ahead, "change")} ${ahead === 1 ? "waits" : "wait"}` : "";
  return `Not copied${since ? ` since ${moment(since)}` : ""}${waiting}. It is safe here, and tried again by itself.`;
}

function inShort(status) {
  const held = Object.keys(status.held_back).length;
  if (!status.sync) return ["off", "On this computer only"];
  if (status.problem) return ["bad", "Sync fails"];
  if (held) return ["bad", `${held} held back`];
  if (!status.remote) return ["busy", "On this computer only"];
  if (status.ahead || status.behind) return ["busy", `${status.ahead + status.behind} to sync`];
  if (status.on_one_disk) return ["busy", "On this disk only"];
  return status.last_fetch ? ["good", `Synced ${ago(status.last_fetch)}`] : ["off", "Not synced yet"];
}

function facts(status) {
  const held = Object.entries(status.held_back);
  const rows = [
    ["Memories lie in", status.base],
    ["Last kept", status.last_commit && moment(status.last_commit)],
    ["Last asked", status.last_fetch && moment(status.last_fetch)],
    ["Last sent", status.last_push && moment(status.last_push)],
    ["Wait to be sent", status.remote && plural(status.ahead, "change")],
    ["Wait to be taken in", status.remote && plural(status.behind, "change")],
    ["Fails since", status.failing_since && moment(status.failing_since)],
  ];
  return [
    h("p", { class: status.problem ? "trouble" : "" }, sentence(status)),
    status.problem ? h("p", {}, `What to do: ${status.what_to_do ?? "try again."}`) : null,
    status.sync ? remote : null,
    h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    held.length ? h("ul", {}, held.map(([file, why]) => h("li", {}, h("code", {}, file), `: ${why}`))) : null,
  ].filter(Boolean);
}

function remoteForm(choose) {
  const address = h("input", { id: "remote", required: "", autocomplete: "off", spellcheck: "false", placeholder: "git@github.com:you/memories.git" });
  const button = h("button", {}, "Keep copies there");
  const said = h("p", { class: "said", role: "status" });
  let told = null; // the address of which it was told that it has something else
  const onsubmit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.textContent = "Asking…";
    const [why, asks] = await choose(address.value, told === address.value);
    told = asks ? address.value : null;
    said.textContent = why;
    button.textContent = asks ? "Put memories there too" : "Keep copies there";
    button.disabled = false;
  };
  return h("form", { class: "remote", onsubmit }, h("label", { for: "remote" }, "Its address, or a directory's whole path"), address, button, said);
}

function sentence(status) {
  if (!status.sync) return "Sync is off (AIAML_ENABLE_SYNC): memories are files on this computer, and nothing else.";
  if (status.problem) return `${uncopied(status)} The reason: ${status.problem}.`;
  if (!status.remote) return "Memories are kept on this computer only: if its disk breaks, they are gone. Export writes a copy now. To have one from now on, and memories on your other computers too, make an empty private repository, or plug in a disk, and say where:";
  if (status.on_one_disk) return "Memories are exchanged with a copy on the same disk, which is no protection: if that disk breaks, both are gone. To have a copy elsewhere, make an empty private repository, or plug in a disk, and say where:";
  return "Every version is kept here, and exchanged with the copy. Whoever hosts that can read them.";
}
