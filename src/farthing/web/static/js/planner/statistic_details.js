// What there is to say of one statistic beyond its line: the promise in words, what it rests on, what is expected of it.

import { html } from "../../vendor/preact.js";
import { InlineErrorBar } from "../charts/error_bars.js";
import { Button } from "../components/button.js";
import { Table } from "../components/table.js";
import { amount, epsilon, percent, plural, plusMinus } from "../format.js";
import { More } from "./disclosure.js";
import { ExpectedFields, expectsAnything } from "./expectations.js";

export function StatisticDetails({ planned, entry, schema, expected, actions, name, rowKey }) {
  return html`
    <div class="statistic-details">
      ${planned ? html`<${Words} planned=${planned} entry=${entry} schema=${schema} />` : null}
      <div class="statistic-more">
        ${
          expectsAnything(entry, planned, schema)
            ? html`
          <${More} summary="What do you expect?">
            ${() => html`<${ExpectedFields} ...${{ entry, planned, schema, expected, onExpect: actions.expect }} />`}
          <//>`
            : null
        }
        ${
          planned && planned.cells > 1 && planned.labels?.length
            ? html`
          <${More} summary=${`${plural(planned.cells, "number")}, each with its error`}>${() => html`<${Cells} planned=${planned} />`}<//>`
            : null
        }
        <${Button} kind="quiet" small onClick=${() => actions.duplicate(rowKey)} aria-label=${`Duplicate ${name}`}>Duplicate<//>
      </div>
    </div>`;
}

function Words({ planned, entry, schema }) {
  const known = Number.isFinite(planned.error);
  const share = Number.isFinite(planned.error_percent)
    ? `${percent(planned.error_percent)} of ${planned.percent_of ?? "the expected value"}. `
    : "";
  return html`
    <div class="statistic-words">
      ${known ? null : html`<p class="muted small">No error can be predicted for this; say what you expect, below.</p>`}
      <${Expected} planned=${planned} entry=${entry} schema=${schema} />
      ${planned.counts && planned.counts !== "rows" ? html`<p class="small">Counts ${planned.counts}.</p>` : null}
      <p class="statistic-sentence">${planned.sentence}${share ? html`<span class="muted">: ${share}</span>` : null}</p>
      ${planned.of_table ? html`<p class="muted small">Of the table: ${planned.of_table.sentence}.</p>` : null}
      ${planned.required ? html`<p class="statistic-required small">Locked: ${planned.required}.</p>` : null}
      ${planned.cells > 1 && Number.isFinite(planned.error_at_once) ? html`<p class="muted small">${planned.cells === 2 ? "Both" : `All ${planned.cells} numbers`} at once: ${plusMinus(planned.error_at_once)}, 95 times in 100.</p>` : null}
      ${planned.shown_even_share ? html`<p class="muted small statistic-even">With an even share of the budget: ${planned.shown_even_share}.</p>` : null}
      <p class="muted small">By itself it costs ${epsilon(planned.epsilon)} (${planned.mechanism}).</p>
      ${planned.note ? html`<p class="statistic-note">${planned.note}</p>` : null}
    </div>`;
}

function Cells({ planned }) {
  const caption =
    planned.cells > planned.labels.length
      ? `The first ${planned.labels.length} of ${planned.cells}`
      : `Errors of ${planned.name}`;
  const rows = planned.labels.map((label, at) => ({ label, error: plusMinus(planned.errors?.[at]) }));
  return html`<${Table} caption=${caption} rows=${rows}
    columns=${[{ key: "label", title: "Cell", head: true }, { key: "error", title: "Error (95%)", right: true }]} />`;
}

/** The error bar around what the steward expects; nothing if nobody said what that is. */
function Expected({ planned, entry, schema }) {
  const [low, high] = planned.whisker ?? [null, null];
  if (!Number.isFinite(low) || !Number.isFinite(high) || !Number.isFinite(planned.reference)) return null;
  const column = schema.find((one) => one.name === entry.column);
  const about = column && Number.isFinite(column.lower) && ["mean", "median", "quantile"].includes(entry.kind);
  const domain = about
    ? [Math.min(column.lower, low), Math.max(column.upper, high)]
    : [Math.min(0, low), Math.max(0, high, 2 * planned.reference)];
  return html`
    <div class="statistic-whisker">
      <${InlineErrorBar} low=${low} high=${high} value=${planned.reference} domain=${domain} width=${220} />
      <span class="small muted">you expect ${amount(planned.reference, planned.error)}; the answer would lie between ${amount(low, planned.error)} and ${amount(high, planned.error)}, 95 times in 100</span>
    </div>`;
}
