// The draft that the page holds, and what its controls do to it. Every function returns a new draft.

import { askedWords } from "./statistic_kinds.js";

const WIDEST = 3; // the slider goes from a thousandth to a thousand times the usual weight
let lastKey = 0;

/** A statistic of the page: its entry in study.toml's words, and a key that stays when others come and go. */
const keyed = (entry) => {
  lastKey += 1;
  return { key: `statistic-${lastKey}`, entry };
};

/** An empty draft for a dataset. */
export const emptyDraft = (dataset) => ({
  dataset,
  title: null,
  study: null,
  rows: [],
  expected: {},
  epsilon: null,
  reserve: null,
  onRequest: null, // planned to be approved by a curator, beside a grant
});

/** The page's form of a draft that the server has kept. */
export const fromServer = (draft) => ({
  ...emptyDraft(draft.dataset),
  title: draft.title ?? null,
  study: draft.study ?? null,
  rows: draft.statistics.map((entry) => keyed(stripped(entry))),
  expected: draft.expected ?? {},
  epsilon: draft.epsilon ?? null,
  reserve: draft.reserve ?? null,
  onRequest: draft.on_request ?? null,
});

/** The draft for a budget of which so much is left: a share that is no longer there becomes all that is left. */
export const fitting = (draft, left) => (draft.epsilon > left ? { ...draft, epsilon: null, reserve: null } : draft);

/** The draft in the server's words: what is not said is left out. */
export const forServer = (draft) =>
  stripped({
    dataset: draft.dataset,
    title: draft.title,
    study: draft.study,
    statistics: draft.rows.map((row) => row.entry),
    expected: draft.expected,
    epsilon: draft.epsilon,
    reserve: draft.reserve || null,
    on_request: draft.onRequest || null,
  });

function stripped(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

export const added = (draft, entry) => ({ ...draft, rows: [...draft.rows, keyed(entry)] });

export const removed = (draft, key) => ({ ...draft, rows: draft.rows.filter((row) => row.key !== key) });

/** One more of the same, below it, under a name of its own if it has one. */
export const duplicated = (draft, key) => ({
  ...draft,
  rows: draft.rows.flatMap((row) =>
    row.key === key
      ? [row, keyed(stripped({ ...row.entry, name: `${row.entry.name ?? askedWords(row.entry)} (again)` }))]
      : [row],
  ),
});

const changed = (draft, key, changes) => ({
  ...draft,
  rows: draft.rows.map((row) => (row.key === key ? { key, entry: stripped({ ...row.entry, ...changes }) } : row)),
});

/** Importance: how much one statistic counts beside the others. */
export const weighted = (draft, key, weight) => changed(draft, key, { weight: weight === 1 ? null : weight });

/** The statistic must be within `within` of the truth, 95 times in 100. */
export const required = (draft, key, within) => changed(draft, key, { within, confidence: null });

export const unlocked = (draft, key) => changed(draft, key, { within: null, confidence: null });

/** What is known from elsewhere about rows, a column or a statistic; null forgets it. */
export const expecting = (draft, name, value) => ({
  ...draft,
  expected: stripped({ ...draft.expected, [name]: value }),
});

/** A slider's place from -3 to 3 as a weight, and back. */
export const weightAt = (place) => Number((10 ** place).toPrecision(3));
export const placeOf = (weight) => Math.max(-WIDEST, Math.min(WIDEST, Math.log10(weight ?? 1)));

/** Importance in words. */
export function importanceWords(weight) {
  const size = weight ?? 1;
  if (size > 0.95 && size < 1.05) return "as important as usual";
  const times = size > 1 ? size : 1 / size;
  const rounded = times >= 10 ? Math.round(times) : Math.round(times * 10) / 10;
  return `${rounded.toLocaleString("en")} times ${size > 1 ? "more" : "less"} important`;
}

/**
 * The present error as one that can be kept: a little more than it is, with four digits.
 * Without the little more, locking everything could ask for a hair more than there is.
 */
export function keepable(error) {
  if (Number.isInteger(error)) return error;
  const room = error * 1.001;
  const step = 10 ** (Math.floor(Math.log10(room)) - 3);
  return Number((Math.ceil(room / step) * step).toPrecision(4));
}
