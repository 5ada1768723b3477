// One line of the plan's table: what is asked, its error, and the controls; what more there is to say unfolds below.

import { html, useState } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { NumberField, SliderField } from "../components/field.js";
import { percent, plusMinus } from "../format.js";
import { importanceWords, placeOf, weightAt } from "./draft.js";
import { ErrorChange } from "./error_change.js";
import { memo } from "./memo.js";
import { Refusal } from "./refusal.js";
import { StatisticDetails } from "./statistic_details.js";
import { askedWords } from "./statistic_kinds.js";

/** What the columns are called; on a narrow page every control has its own label instead. */
export const StatisticHeads = () => html`
  <div class="statistic-line statistic-heads" aria-hidden="true">
    <span>Statistic</span><span>Error, 95%</span><span>Change</span><span>Importance</span><span>Make it ±</span><span></span>
  </div>`;

/**
 * `row` is what was asked ({key, entry}), `planned` what the newest plan predicts of it (null until it is planned),
 * `before` the error that it had before the last edit.
 */
export const StatisticRow = memo(
  ({ row, planned, before, schema, expected, refusal, stale, open, chosen, onOpen, onChoose, actions }) => {
    const { entry, key } = row;
    const name = planned?.name ?? askedWords(entry);
    const classes = ["statistic", stale && "stale", open && "open", chosen && "chosen"].filter(Boolean).join(" ");
    return html`
    <li class=${classes} data-key=${key} data-name=${name} onFocusCapture=${() => onChoose(key)} onPointerDown=${() => onChoose(key)}>
      <div class="statistic-line">
        <div class="statistic-what">
          <h3 class="statistic-name" tabindex="-1">
            <button type="button" class="statistic-open" aria-expanded=${open ? "true" : "false"} title=${name} onClick=${() => onOpen(key)}>${name}</button>
          </h3>
          <p class="statistic-counts"><${Warning} planned=${planned} />${countsWords(planned, entry)}</p>
        </div>
        <${Prediction} planned=${planned} />
        <${ErrorChange} before=${before} now=${planned?.error} />
        <${Controls} row=${row} name=${name} unit=${planned?.unit_of_error} lockable=${planned?.error > 0} actions=${actions} />
      </div>
      ${refusal ? html`<${Refusal} refusal=${refusal} own=${name} actions=${actions} ownKey=${key} />` : null}
      ${open ? html`<${StatisticDetails} ...${{ planned, entry, schema, expected, actions, name, rowKey: key }} />` : null}
    </li>`;
  },
);

/** What the numbers count, or how many there are of what. */
function countsWords(planned, entry) {
  if (!planned) return entry.of === "people" ? "people" : "";
  const many = planned.cells > 1 ? `${planned.cells} numbers` : "1 number";
  const counted = planned.counts !== "rows" ? planned.counts : planned.unit_of_error === "rows" ? "rows" : null;
  return counted ? `${counted}; ${many}` : many;
}

function Warning({ planned }) {
  if (!planned?.note) return null;
  return html`<span class="statistic-mark" title=${planned.note}><span aria-hidden="true">⚠</span><span class="unseen">Note: ${planned.note} </span></span>`;
}

function Prediction({ planned }) {
  if (!planned) {
    return html`<div class="statistic-error" role="status"><span class="unseen">Working out its error</span><div class="skeleton" aria-hidden="true"></div></div>`;
  }
  const known = Number.isFinite(planned.error);
  const unit = planned.unit_of_error;
  const unitText = ["rows", "people"].includes(unit) ? unit : unit ? `in ${unit}` : "";
  const share = Number.isFinite(planned.error_percent) ? percent(planned.error_percent) : "";
  return html`
    <div class="statistic-error">
      <span class="error-number number">${plusMinus(planned.error)}</span>
      <span class="error-unit">${known ? unitText : "unknown"}${share ? html`${unitText ? ", " : ""}<span class="error-percent number" title=${`of ${planned.percent_of ?? "the expected value"}`}>${share}</span>` : null}</span>
    </div>`;
}

/** What can be done about the error; drawn again only when the row itself is changed. */
const Controls = memo(({ row, name, unit, lockable, actions }) => {
  const locked = row.entry.within !== undefined;
  const words = locked ? "its error is locked" : importanceWords(row.entry.weight);
  return html`
    <div class="statistic-importance" title=${words}>
      <${SliderField} label="Importance" left="less important" right="more important" min=${-3} max=${3} step=${0.05}
        value=${placeOf(row.entry.weight)} valueText=${words} disabled=${locked}
        onValue=${(place) => actions.weigh(row.key, weightAt(place))} />
    </div>
    <${MakeIt} ...${{ row, name, unit, actions }} />
    <div class="statistic-buttons">
      <${Button} small class="lock" aria-pressed=${locked ? "true" : "false"} disabled=${!locked && !lockable}
        title=${locked ? `Locked at ${plusMinus(row.entry.within)}: press to unlock` : "Lock its present error"}
        onClick=${() => (locked ? actions.unlock(row.key) : actions.lock(row.key))} aria-label=${locked ? `Unlock ${name}` : `Lock ${name} at its present error`}>
        <${LockPicture} closed=${locked} />${locked ? html`<span class="unseen">Locked at ${plusMinus(row.entry.within)}</span>` : null}
      <//>
      <${Button} kind="quiet" small title="Remove" onClick=${() => actions.remove(row.key)} aria-label=${`Remove ${name}`}><span aria-hidden="true">✕</span><//>
    </div>`;
});

/** "Make it ±x". */
function MakeIt({ row, name, unit, actions }) {
  const [wish, setWish] = useState(null);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState(null);
  const locked = row.entry.within;
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
      <${NumberField} label="Make it ±" value=${wish} error=${wrong} unit=${unit} placeholder=${locked === undefined ? "" : plusMinus(locked)}
        onValue=${(number, typed) => {
          setWish(number);
          setText(typed);
          setWrong(null);
        }} />
      <${Button} type="submit" small aria-label="Set this error" title="Set this error">Set<//>
    </form>`;
}

function LockPicture({ closed }) {
  return html`
    <svg class="lock-picture" width="16" height="18" viewBox="0 0 16 18" aria-hidden="true">
      <path d=${closed ? "M4 8V5a4 4 0 0 1 8 0v3" : "M4 8V5a4 4 0 0 1 7.6-1.8"} fill="none" stroke="currentColor" stroke-width="2" />
      <rect x="2" y="8" width="12" height="9" rx="2" fill="currentColor" />
    </svg>`;
}
