// What the columns of a schema allow: how many cells they make, where they are cut, and examples of conditions.

import { count, MISSING } from "../format.js";
import { conditionText } from "../planner/conditions.js";

export const MOST_VALUES = 131072; // a longer list of whole numbers must be cut
export const MOST_CELLS = 4194304; // of all columns together
const COMFORTABLE = 20000; // cells: planned in a moment
const PARTS = 20;
const DAY = 86400000;

/** How many values a column has by itself; null for real numbers, which have no list. */
export function valuesOf(column) {
  if (column.kind === "flags") return 2;
  if (column.kind === "categories") return (column.categories || []).length;
  if (column.kind === "integers") return column.upper - column.lower + 1;
  if (column.kind === "dates") return Math.round((Date.parse(column.upper) - Date.parse(column.lower)) / DAY) + 1;
  return null;
}

/** Must the column be cut into parts before it can be asked about? */
export function mustBeCut(column) {
  const values = valuesOf(column);
  return values === null || values > MOST_VALUES;
}

/** Can it be cut at all? */
export function canBeCut(column) {
  return column.kind === "reals" || column.kind === "integers" || column.kind === "dates";
}

/** The cells of one column, cut or not. */
export function cellsOf(column, bins) {
  const values = valuesOf(column);
  if (!canBeCut(column) || !bins) return values === null ? PARTS : values;
  return values === null ? bins : Math.min(bins, values);
}

/** The columns to begin with: as many as are comfortable, those that need no cutting first. */
export function firstChoice(schema) {
  const chosen = [];
  let cells = 1;
  for (const column of schema) {
    if (mustBeCut(column)) continue;
    const next = cells * cellsOf(column, null);
    if (next > COMFORTABLE) continue;
    chosen.push(column.name);
    cells = next;
  }
  if (chosen.length === 0 && schema.length > 0) chosen.push(schema[0].name);
  return chosen;
}

/** The numbers of parts to begin with, for the columns that must be cut. */
export function firstBins(schema) {
  return Object.fromEntries(schema.filter(mustBeCut).map((column) => [column.name, PARTS]));
}

/** A column in a few words. */
export function described(column) {
  if (column.kind === "flags") return "yes or no";
  if (column.kind === "categories") {
    const all = column.categories || [];
    return `${all.slice(0, 4).join(", ")}${all.length > 4 ? ` … (${all.length} in all)` : ""}`;
  }
  const what = column.kind === "integers" ? "whole numbers" : column.kind === "dates" ? "dates" : "numbers";
  return `${what} from ${column.lower} to ${column.upper}`;
}

/** A number (or day) inside the column's bounds at which a question may cut it. */
export function cutOf(column, share = 0.5) {
  if (Array.isArray(column.edges) && column.edges.length > 0) {
    const inner = column.edges.length > 2 ? column.edges.slice(1, -1) : column.edges;
    return inner[Math.min(inner.length - 1, Math.floor(share * inner.length))];
  }
  if (column.kind === "dates") {
    const [low, high] = [Date.parse(column.lower), Date.parse(column.upper)];
    return new Date(low + Math.round(((high - low) * share) / DAY) * DAY).toISOString().slice(0, 10);
  }
  return round(
    column.lower + (column.upper - column.lower) * share,
    column.upper - column.lower,
    column.kind === "integers",
  );
}

function round(value, span, whole) {
  const step = 10 ** Math.floor(Math.log10(Math.max(span, 1e-12)) - 0.7);
  const rounded = Math.round(value / step) * step;
  return whole ? Math.round(rounded) : Number(rounded.toPrecision(6));
}

/** Up to four questions that make sense for these columns. */
export function examplesFor(columns) {
  const simple = columns.map((column) => [column, exampleOf(column)]).filter(([, text]) => text);
  const examples = simple.slice(0, 2).map(([, text]) => text);
  if (simple.length >= 2) examples.push(`${simple[0][1]} and ${simple[1][1]}`);
  if (simple.length >= 3) examples.push(`${simple[0][1]} and (${simple[1][1]} or ${simple[2][1]})`);
  return [...new Set(examples)];
}

function exampleOf(column) {
  if (column.kind === "flags") return conditionText({ column, operator: "true" });
  if (column.kind === "categories")
    return conditionText({ column, operator: "=", value: (column.categories || [])[0] });
  return conditionText({ column, operator: ">=", value: cutOf(column) });
}

/** What stands already, and one more, joined so that it means what it looks like. */
export function joinedBy(word, before, added) {
  const text = before.trim();
  if (!text) return added;
  const guarded = word === "and" && / or /i.test(text) && !/^\([^()]*\)$/.test(text) ? `(${text})` : text;
  return `${guarded} ${word} ${added}`;
}

/** Where a fault is: the text, and a caret below the character (counted as people count, not in halves of emoji). */
export function pointed(text, position) {
  const letters = Array.from(text);
  const at = Math.max(0, Math.min(letters.length, Number(position) || 0));
  return { text, caret: `${" ".repeat(at)}^`, at: letters.slice(0, at).join("").length };
}

/** The error of a count, to the last row: what was promised is never rounded down. */
export function giveOrTake(error) {
  return typeof error === "number" ? `±${count(Math.ceil(error))}` : MISSING;
}
