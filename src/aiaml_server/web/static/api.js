// What the page asks the program for. The token comes in the address behind `#`, which no browser
// sends anywhere; it is taken out of there at once, kept for this tab, and sent as a header.

const KEY = "aiaml-token";

export class Problem extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status; // 0: nobody answered
  }
}

// Take the token out of the address; say whether there was one.
export function takeToken() {
  const words = new URLSearchParams(location.hash.slice(1));
  const token = words.get("token");
  if (!token) return false;
  sessionStorage.setItem(KEY, token);
  words.delete("token");
  history.replaceState(null, "", `${location.pathname}#${words}`);
  return true;
}

async function ask(method, path, { signal, version, text } = {}) {
  const headers = { "X-AIAML-Token": sessionStorage.getItem(KEY) ?? "" };
  if (version) headers["If-Match"] = version;
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: text, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "aiaml web is no longer running; start it again in a terminal.");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Problem(answer.status, value.error);
  return value;
}

const one = (file) => `/api/memories/${encodeURIComponent(file.toWellFormed?.() ?? file)}`;

export const memories = (words, signal) => ask("GET", `/api/memories?${words}`, { signal });
export const overview = (words, signal) => ask("GET", `/api/overview?${words}`, { signal });
export const status = () => ask("GET", "/api/status");
export const memory = (file, signal) => ask("GET", one(file), { signal });
export const edit = (file, version, text) => ask("PUT", one(file), { version, text });
export const forget = (file, version) => ask("DELETE", one(file), { version });
