// One statistic of the plan: its error first, its epsilon second, and what can be done about it.

import { html, useState } from "../../vendor/preact.js";
import { InlineErrorBar } from "../charts/error_bars.js";
import { Button } from "../components/button.js";
import { NumberField, SliderField } from "../components/field.js";
import { Table } from "../components/table.js";
import { amount, epsilon, percent, plural, plusMinus } from "../format.js";
import { More } from "./disclosure.js";
import { importanceWords, placeOf, weightAt } from "./draft.js";
import { ExpectedFields, expectsAnything } from "./expectations.js";
import { memo } from "./memo.js";
import { Refusal } from "./refusal.js";
import { askedWords } from "./statistic_kinds.js";

/** `row` is what was asked ({key, entry}), `planned` what the newest plan predicts of it (null until it is planned). */
export const StatisticRow = memo(({ row, planned, schema, expected, refusal, stale, actions }) => {
  const { entry } = row;
  const name = planned?.name ?? askedWords(entry);
  return html`
    <li class="statistic ${stale ? "stale" : ""}" data-key=${row.key} data-name=${name}>
      <div class="statistic-head">
        <h3 class="statistic-name" tabindex="-1">${name}</h3>
        <${Button} kind="quiet" small onClick=${() => actions.remove(row.key)} aria-label=${`Remove ${name}`}>Remove<//>
      </div>
      <div class="statistic-body">
        <${PredictedError} planned=${planned} entry=${entry} schema=${schema} />
        <${Controls} row=${row} name=${name} unit=${planned?.unit_of_error} lockable=${planned?.error > 0} actions=${actions} />
      </div>
      ${refusal ? html`<${Refusal} refusal=${refusal} own=${name} actions=${actions} ownKey=${row.key} />` : null}
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
      </div>
    </li>`;
});

function Cells({ planned }) {
  const caption =
    planned.cells > planned.labels.length
      ? `The first ${planned.labels.length} of ${planned.cells}`
      : `Errors of ${planned.name}`;
  const rows = planned.labels.map((label, at) => ({ label, error: plusMinus(planned.errors?.[at]) }));
  return html`<${Table} caption=${caption} rows=${rows}
    columns=${[{ key: "label", title: "Cell", head: true }, { key: "error", title: "Error (95%)", right: true }]} />`;
}

function PredictedError({ planned, entry, schema }) {
  if (!planned) {
    return html`<div class="statistic-error" role="status"><span class="unseen">Working out its error</span><div class="skeleton" aria-hidden="true"></div><div class="skeleton" aria-hidden="true"></div></div>`;
  }
  const unit = planned.unit_of_error;
  const unitText = ["rows", "people"].includes(unit) ? unit : unit ? `in ${unit}` : "";
  const known = Number.isFinite(planned.error);
  return html`
    <div class="statistic-error">
      <p class="error-line">
        <span class="error-number number">${plusMinus(planned.error)}</span><span class="error-unit">${known ? unitText : ""}</span>
        ${Number.isFinite(planned.error_percent) ? html` <span class="error-percent number">${percent(planned.error_percent)} of ${planned.percent_of ?? "the expected value"}</span>` : null}
      </p>
      ${known ? null : html`<p class="muted small">No error can be predicted for this; say what you expect, below.</p>`}
      <${Expected} planned=${planned} entry=${entry} schema=${schema} />
      ${planned.counts && planned.counts !== "rows" ? html`<p class="small statistic-counts">Counts ${planned.counts}.</p>` : null}
      <p class="statistic-sentence">${planned.sentence}</p>
      ${planned.of_table ? html`<p class="muted small">Of the table: ${planned.of_table.sentence}.</p>` : null}
      ${planned.required ? html`<p class="statistic-required small">Locked: ${planned.required}.</p>` : null}
      ${planned.cells > 1 && Number.isFinite(planned.error_at_once) ? html`<p class="muted small">${planned.cells === 2 ? "Both" : `All ${planned.cells} numbers`} at once: ${plusMinus(planned.error_at_once)}, 95 times in 100.</p>` : null}
      ${planned.shown_even_share ? html`<p class="muted small statistic-even">With an even share of the budget: ${planned.shown_even_share}.</p>` : null}
      <p class="muted small">By itself it costs ${epsilon(planned.epsilon)} (${planned.mechanism}).</p>
      ${planned.note ? html`<p class="statistic-note">${planned.note}</p>` : null}
    </div>`;
}

/** The error bar around what the steward expects; nothing where nobody said what that is. */
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
      <span class="small muted">you expect ${amount(planned.reference, planned.error)}; the answer would lie between ${amount(low, planned.error)} and ${amount(high, planned.error)}</span>
    </div>`;
}

/** What can be done about the error; drawn again only when the row itself is changed. */
const Controls = memo(({ row, name, unit, lockable, actions }) => {
  const locked = row.entry.within !== undefined;
  return html`
    <div class="statistic-controls">
      <${SliderField} label="Importance" left="less important" right="more important" min=${-3} max=${3} step=${0.05}
        value=${placeOf(row.entry.weight)} valueText=${locked ? "its error is locked" : importanceWords(row.entry.weight)} disabled=${locked}
        onValue=${(place) => actions.weigh(row.key, weightAt(place))} />
      <${MakeIt} ...${{ row, name, unit, locked, lockable, actions }} />
    </div>`;
});

/** "Make it ±x", and the lock that keeps the present error. */
function MakeIt({ row, name, unit, locked, lockable, actions }) {
  const [wish, setWish] = useState(null);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    if (wish === null || !(wish > 0)) {
      setWrong(text.trim() === "" ? "Write the error you need." : "Write a number above 0.");
      return;
    }
    setWrong(null);
    actions.make(row.key, wish);
  };
  return html`
    <form class="make-it" onSubmit=${submit} noValidate aria-label=${`Error of ${name}`}>
      <${NumberField} label="Make it ±" value=${wish} error=${wrong} unit=${unit}
        onValue=${(number, typed) => {
          setWish(number);
          setText(typed);
          setWrong(null);
        }} />
      <${Button} type="submit" small>Set this error<//>
      <${Button} small class="lock" aria-pressed=${locked ? "true" : "false"} disabled=${!locked && !lockable}
        onClick=${() => (locked ? actions.unlock(row.key) : actions.lock(row.key))} aria-label=${locked ? `Unlock ${name}` : `Lock ${name} at its present error`}>
        <${LockPicture} closed=${locked} /> ${locked ? `Locked at ${plusMinus(row.entry.within)}` : "Lock this error"}
      <//>
    </form>`;
}

function LockPicture({ closed }) {
  return html`
    <svg class="lock-picture" width="16" height="18" viewBox="0 0 16 18" aria-hidden="true">
      <path d=${closed ? "M4 8V5a4 4 0 0 1 8 0v3" : "M4 8V5a4 4 0 0 1 7.6-1.8"} fill="none" stroke="currentColor" stroke-width="2" />
      <rect x="2" y="8" width="12" height="9" rx="2" fill="currentColor" />
    </svg>`;
}
