// What the steward knows from elsewhere. It makes the predicted errors true; it costs nothing and is no secret of the rows.

import { html } from "../../vendor/preact.js";
import { NumberField } from "../components/field.js";
import { count, percent } from "../format.js";
import { CountedRows } from "./row_count.js";

const SHOWN_CATEGORIES = 12;
const COUNTS = ["count"];

/** The columns of a statistic about which an expectation helps. */
function columnsOf(entry, schema) {
  const names = [
    entry.column,
    entry.target,
    ...(entry.columns ?? []),
    ...(entry.features ?? []),
    ...[entry.by ?? []].flat(),
  ];
  return [...new Set(names)]
    .map((name) => schema.find((column) => column.name === name))
    .filter(
      (column) =>
        column &&
        ["integers", "reals", "categories"].includes(column.kind) &&
        (column.kind !== "categories" || (column.categories ?? []).length <= SHOWN_CATEGORIES),
    );
}

const isOneCount = (entry, planned) => COUNTS.includes(entry.kind) && planned?.cells === 1;

export const expectsAnything = (entry, planned, schema) =>
  isOneCount(entry, planned) || columnsOf(entry, schema).length > 0;

/** The fields for one statistic; the same column shows the same numbers in every row. */
export function ExpectedFields({ entry, planned, schema, expected, onExpect }) {
  return html`
    <p class="hint">Last year's figure, a published number or a guess. Errors are predicted from it. It is not secret and costs nothing.</p>
    <div class="expected-fields">
      ${
        isOneCount(entry, planned)
          ? html`
        <${NumberField} label=${`About how many ${entry.of === "people" ? "people" : "rows"}?`} optional value=${expected[planned.name] ?? null}
          onValue=${(number, text) =>
            settled(
              number,
              text,
              (value) => value >= 0,
              (value) => onExpect(planned.name, value),
            )} />`
          : null
      }
      ${columnsOf(entry, schema).map((column) =>
        column.kind === "categories"
          ? html`<${Shares} key=${column.name} column=${column} shares=${expected[column.name]} onExpect=${onExpect} />`
          : html`<${Spread} key=${column.name} column=${column} known=${expected[column.name]} onExpect=${onExpect} />`,
      )}
    </div>`;
}

/** Calls `set` with a number that holds, or with null when the field was emptied; half-typed text changes nothing. */
function settled(number, text, holds, set) {
  if (text.trim() === "") set(null);
  else if (number !== null && holds(number)) set(number);
}

function Spread({ column, known, onExpect }) {
  const pair = Array.isArray(known) && known.length === 2 ? known : null;
  const usual = Number(((column.upper - column.lower) / 6).toPrecision(2));
  const inside = (value) => value >= column.lower && value <= column.upper;
  return html`
    <fieldset class="expected-pair">
      <legend>${column.name}</legend>
      <${NumberField} label="Average" optional value=${pair?.[0] ?? null} placeholder=${`${column.lower} to ${column.upper}`}
        onValue=${(number, text) => settled(number, text, inside, (value) => onExpect(column.name, value === null ? null : [value, pair?.[1] ?? usual]))} />
      <${NumberField} label="Spread" optional value=${pair?.[1] ?? null} placeholder=${String(usual)} hint=${null}
        onValue=${(number, text) =>
          settled(
            number,
            text,
            (value) => value > 0,
            (value) => pair && onExpect(column.name, [pair[0], value ?? usual]),
          )} disabled=${!pair} />
    </fieldset>`;
}

function Shares({ column, shares, onExpect }) {
  const weights = shares && typeof shares === "object" && !Array.isArray(shares) ? shares : null;
  const even = Math.round(1000 / column.categories.length) / 10;
  const set = (category, share) => {
    // Until more is said, the others share the rest.
    const rest = Math.max(0, 1 - share / 100) / Math.max(1, column.categories.length - 1);
    const before =
      weights ?? Object.fromEntries(column.categories.map((one) => [String(one), Number(rest.toPrecision(4))]));
    const next = { ...before, [String(category)]: share / 100 };
    onExpect(column.name, Object.values(next).some((one) => one > 0) ? next : null);
  };
  return html`
    <fieldset class="expected-shares">
      <legend>${column.name}: share of each</legend>
      ${weights ? html`<${Together} column=${column} weights=${weights} />` : null}
      ${column.categories.map(
        (category) => html`
        <${NumberField} key=${category} label=${String(category)} unit="%" placeholder=${String(even)}
          value=${weights ? Number((100 * (weights[String(category)] ?? 0)).toPrecision(4)) : null}
          onValue=${(number, text) =>
            settled(
              number,
              text,
              (value) => value >= 0,
              (value) => (value === null ? onExpect(column.name, null) : set(category, value)),
            )} />`,
      )}
    </fieldset>`;
}

/** Shares that are not 100 in the hundred are read as weights: that is told, because nobody means it. */
function Together({ column, weights }) {
  const sum = column.categories.reduce((all, one) => all + (weights[String(one)] ?? 0), 0);
  if (Math.abs(sum - 1) <= 0.015) return null;
  const [first] = [...column.categories].sort((a, b) => (weights[String(b)] ?? 0) - (weights[String(a)] ?? 0));
  const read = percent((100 * (weights[String(first)] ?? 0)) / sum);
  return html`<p class="field-error" role="alert">These add up to ${percent(100 * sum)}, not 100%. Until they do, ${String(first)} counts as ${read}.</p>`;
}

/** The number of people, where it is not public and a statistic counts them. */
export function ExpectedPeople({ people, entries, expected, onExpect }) {
  if (Number.isFinite(people) || !entries.some((entry) => entry.of === "people")) return null;
  return html`
    <div class="expected-rows">
      <${NumberField} label="About how many people are there?" optional value=${expected.people ?? null} placeholder="10000"
        onValue=${(number, text) =>
          settled(
            number,
            text,
            (value) => value >= 1,
            (value) => onExpect("people", value === null ? null : Math.round(value)),
          )} />
    </div>`;
}

/** The number of rows, where it is not public: the errors of averages and all percentages follow from it. */
export function ExpectedRows({ rows, expected, view, onExpect }) {
  if (Number.isFinite(rows)) return null;
  const size = view?.counted?.lower ?? view?.assumed_rows ?? null;
  const hint =
    expected.rows || size === null || view.counted
      ? null
      : `${count(size)} are assumed until you say otherwise. A guess will do; the errors below depend on it.`;
  return html`
    <div class="expected-rows">
      <${NumberField} label="About how many rows are there?" optional value=${expected.rows ?? null} placeholder=${size === null ? "" : String(size)} hint=${hint}
        onValue=${(number, text) =>
          settled(
            number,
            text,
            (value) => value >= 1,
            (value) => onExpect("rows", value === null ? null : Math.round(value)),
          )} />
      ${view?.counted && !expected.rows ? html`<${CountedRows} counted=${view.counted} />` : null}
    </div>`;
}
