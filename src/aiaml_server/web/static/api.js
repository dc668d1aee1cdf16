// What the page asks the program for. The token comes in the address behind `#`, which no browser
// sends anywhere; it is taken out of there at once, kept for this tab, and sent as a header.

const KEY = "aiaml-token";
const HANDED = 400; // milliseconds that another tab has to hand the token over
const tabs = new BroadcastChannel("aiaml"); // of this origin alone

export class Problem extends Error {
  constructor(status, sentence, fields = {}) {
    super(sentence);
    this.status = status; // 0: nobody answered
    this.fields = fields; // that are wrong, each with what it must be
  }
}

// Take the token out of the address.
export function takeToken() {
  const words = new URLSearchParams(location.hash.slice(1));
  const token = words.get("token");
  if (!token) return;
  sessionStorage.setItem(KEY, token);
  words.delete("token");
  history.replaceState(null, "", `${location.pathname}#${words}`);
}

// Say whether there is a token, after having asked the other tabs for it.
export async function hasToken() {
  takeToken();
  if (sessionStorage.getItem(KEY)) return true;
  tabs.postMessage({ wanted: true });
  await new Promise((resolve) => {
    tabs.addEventListener("message", resolve, { once: true });
    setTimeout(resolve, HANDED);
  });
  return Boolean(sessionStorage.getItem(KEY));
}

// Forget a token that is of no use.
export const dropToken = () => sessionStorage.removeItem(KEY);

tabs.addEventListener("message", ({ data }) => {
  const token = sessionStorage.getItem(KEY);
  if (data.wanted && token) tabs.postMessage({ token });
  if (data.token && !token) sessionStorage.setItem(KEY, data.token);
});

async function fetched(method, path, { signal, version, text, json } = {}) {
  const headers = { "X-AIAML-Token": sessionStorage.getItem(KEY) ?? "" };
  if (version) headers["If-Match"] = version;
  if (json !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: json === undefined ? text : JSON.stringify(json), cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "aiaml web is no longer running; start it again in a terminal.");
  }
  if (!answer.ok) {
    const { error, fields } = await answer.json();
    throw new Problem(answer.status, error, fields);
  }
  return answer;
}

const ask = async (...words) => (await fetched(...words)).json();
const one = (file) => `/api/memories/${encodeURIComponent(file.toWellFormed?.() ?? file)}`;

export const memories = (words, signal) => ask("GET", `/api/memories?${words}`, { signal });
export const overview = (words, signal) => ask("GET", `/api/overview?${words}`, { signal });
export const lately = () => ask("GET", "/api/lately");
export const forgotten = (signal) => ask("GET", "/api/forgotten", { signal });
export const status = () => ask("GET", "/api/status");
export const sync = () => ask("POST", "/api/sync");
export const chooseRemote = (address, yes) => ask("POST", "/api/remote", { json: { address, yes } });
export const memory = (file, signal) => ask("GET", one(file), { signal });
export const versions = (file, signal) => ask("GET", `${one(file)}/history`, { signal });
export const edit = (file, version, text) => ask("PUT", one(file), { version, text });
export const editWords = (file, version, json) => ask("PUT", one(file), { version, json });
export const remove = (file, version) => ask("DELETE", one(file), { version });
export const store = (json) => ask("POST", "/api/memories", { json });

// What is done to several: to `files`, or to all that `words` mean, in the `version` that was told of.
const several = (path, { files, words = "", version }) => ask("POST", `${path}?${words}`, { json: files, version });

export const chosen = (words) => ask("GET", `/api/chosen?${words}`);
export const forget = (some) => several("/api/forget", some);
export const exported = (some) => several("/api/export", some);
export const undo = (key) => ask("POST", "/api/undo", { json: key });
export const restore = (texts) => ask("POST", "/api/restore", { json: texts });
export const preview = (text, signal) => ask("POST", "/api/preview", { text, signal });

// Call `told(memories, status)` with two numbers, now and whenever one has changed, until aborted.
export async function listen(told, signal) {
  const answer = await fetched("GET", "/api/events", { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) told(...JSON.parse(line.slice(6)));
  }
}
