// The one language for filters, as the program has it: `agent:claude topic:"fast food" since:7d`.
// What stands behind a chip is that text.

const FIELD = /^(?:(agent|user|topic|since|before):("[^"]+"|[^\s"]+))$/i;
const WORD = /(?:[^\s":]+:)?"[^"]*"?|\S+/g;

// Divide a question into its fields and the rest.
export function divided(question) {
  const words = question.match(WORD) ?? [];
  return {
    chips: words.filter((word) => FIELD.test(word)),
    rest: words.filter((word) => !FIELD.test(word)).join(" "),
  };
}

// Take complete fields out of what is being typed: those that a blank follows.
export function typed(text) {
  const at = text.endsWith(" ") ? text.length : text.lastIndexOf(" ") + 1;
  const { chips, rest } = divided(text.slice(0, at));
  if (!chips.length) return { chips, rest: text };
  return { chips, rest: [rest, text.slice(at)].filter(Boolean).join(" ") };
}

export function chip(field, value) {
  return `${field}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;
}

// The field and the value of a chip.
export function said(text) {
  const [field, ...rest] = text.split(":");
  return [field.toLowerCase(), rest.join(":").replaceAll('"', "")];
}

export const valueOf = (chips, field) => said(chips.find((each) => said(each)[0] === field) ?? `${field}:`)[1];

export const topicsOf = (chips) => chips.map(said).filter(([field]) => field === "topic").map(([, value]) => value);

// The same chips with another value for a field; without a value, none.
export function withField(chips, field, value) {
  const others = chips.filter((each) => said(each)[0] !== field);
  return value ? [...others, chip(field, value)] : others;
}

export function withTopic(chips, name) {
  const same = (each) => each.toLowerCase() === chip("topic", name).toLowerCase();
  return chips.some(same) ? chips.filter((each) => !same(each)) : [...chips, chip("topic", name)];
}
