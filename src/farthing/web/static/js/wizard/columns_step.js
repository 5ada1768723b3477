// Step 3: what each column may hold, from common knowledge and never from the rows.
import { html } from "../../vendor/preact.js";
import { CheckField, SelectField, TextArea, TextField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { problemWith, sentenceAbout, useCheck } from "./declaration_check.js";
import { bodyOf, canBeFound, columnId, declarable, isToBeFound, KINDS, textual } from "./declaration_draft.js";

export function ColumnsStep({ draft, change, problemAt }) {
  const set = (name, part) =>
    change((old) => ({ ...old, columns: { ...old.columns, [name]: { ...old.columns[name], ...part } } }));
  const { data: checked } = useCheck(bodyOf(draft), 350);
  return html`
    <${Notice} title="Do not look the numbers up in the file">
      <p>The largest income in a file belongs to one person. If the range came from the rows, the range would expose that person
        before any noise is added. So say what <em>could</em> be there, from common knowledge.</p>
    <//>
    ${declarable(draft).map((name) => html`<${Column} key=${name} name=${name} column=${draft.columns[name]} holds=${draft.sourceColumns.find((one) => one.name === name).holds} set=${(part) => set(name, part)} problemAt=${problemAt} checked=${checked} />`)}`;
}

/** Why no statistic can use a column, and what to do about it. */
const UNUSABLE = {
  "times with a time zone":
    "holds times with a time zone, which no statistic can use: store it as dates, or as timestamps without a time zone, and choose the file again.",
  other: "is of a type that no statistic can use: convert it in the file, or leave it out.",
};

function Column({ name, column, holds, set, problemAt, checked }) {
  const id = columnId(name);
  const toBeFound = isToBeFound(column);
  const [sentence, problem] = [sentenceAbout(checked, name), problemWith(checked, name)];
  return html`<fieldset class="card wizard-column">
    <legend class="unseen">Column ${name}</legend>
    <h3 aria-hidden="true"><code>${name}</code></h3>
    <div class="stack">
      <${SelectField} id=${id} label=${html`<span class="unseen">${name}: </span>What does it hold?`} value=${column.kind} onValue=${(kind) => set({ kind })} options=${KINDS} error=${problemAt(id)} />
      ${
        canBeFound(column) &&
        html`<${CheckField} id=${id + "-unknown"} checked=${toBeFound} onValue=${(unknown) => set({ unknown })}
        label=${html`<span class="unseen">${name}: </span>Nobody knows ${column.kind === "categories" ? "its values" : "its range"}: find ${column.kind === "categories" ? "them" : "it"} later, for a small part of the budget`} />`
      }
      ${!toBeFound && (column.kind === "integers" || column.kind === "reals") && html`<${Range} ...${{ id, name, column, set, problemAt }} />`}
      ${column.kind === "reals" && textual(holds) && html`<${CheckField} id=${id + "-comma"} checked=${Boolean(column.comma)} onValue=${(comma) => set({ comma })} label=${html`<span class="unseen">${name}: </span>Decimals are written with a comma, as in 23,5`} />`}
      ${!toBeFound && column.kind === "dates" && html`<${Days} ...${{ id, name, column, set, problemAt }} />`}
      ${
        !toBeFound &&
        column.kind === "categories" &&
        html`<${TextArea} id=${id + "-categories"} label=${html`<span class="unseen">${name}: </span>Which values can it have?`} rows="3" value=${column.categories} onValue=${(categories) => set({ categories })} error=${problemAt(id + "-categories")}
        hint="One per line, or separated by commas, written as in the file. Example: north, south, east, west. Values that are not in the list are not counted. A list that was not taken from the rows reveals nobody." />`
      }
      ${
        column.kind === "categories" &&
        textual(holds) &&
        html`
        <${CheckField} id=${id + "-trim"} checked=${Boolean(column.trim)} onValue=${(trim) => set({ trim })} label=${html`<span class="unseen">${name}: </span>Ignore blanks before and after, so that " north" is north`} />
        <${CheckField} id=${id + "-lowercase"} checked=${Boolean(column.lowercase)} onValue=${(lowercase) => set({ lowercase })} label=${html`<span class="unseen">${name}: </span>Ignore case, so that North is north${toBeFound ? "" : ". Write the list above in lower case"}`} />`
      }
      <div aria-live="polite">
        ${UNUSABLE[holds] && html`<p class="small">${name} ${UNUSABLE[holds]}</p>`}
        ${column.kind === "none" && html`<p class="small muted">Left out: nothing can be asked about ${name}.</p>`}
        ${column.kind !== "none" && sentence && html`<p class="small muted">${sentence}</p>`}
        ${column.kind !== "none" && problem && html`<p class="field-error">${name} ${problem}.</p>`}
      </div>
    </div>
  </fieldset>`;
}

function Range({ id, name, column, set, problemAt }) {
  const example =
    column.kind === "integers"
      ? "Example: 0 to 110 for an age."
      : "Example: 0 to 250,000 for a yearly income, typed as 250000.";
  return html`
    <p class="hint">The lowest and the highest value that make sense. ${example} Values outside are moved to the nearest end; a wide range needs more noise.</p>
    <div class="pair">
      <${TextField} id=${id + "-lower"} class="number" inputmode="decimal" label=${html`<span class="unseen">${name}: </span>Lowest`} value=${column.lower} onValue=${(lower) => set({ lower })} error=${problemAt(id + "-lower")} autocomplete="off" />
      <${TextField} id=${id + "-upper"} class="number" inputmode="decimal" label=${html`<span class="unseen">${name}: </span>Highest`} value=${column.upper} onValue=${(upper) => set({ upper })} error=${problemAt(id + "-upper")} autocomplete="off" />
    </div>`;
}

function Days({ id, name, column, set, problemAt }) {
  return html`
    <p class="hint">The first and the last day that can be there. Example: the first and the last day of the survey.</p>
    <div class="pair">
      <${TextField} id=${id + "-lower"} type="date" label=${html`<span class="unseen">${name}: </span>First day`} value=${column.lower} onValue=${(lower) => set({ lower })} error=${problemAt(id + "-lower")} />
      <${TextField} id=${id + "-upper"} type="date" label=${html`<span class="unseen">${name}: </span>Last day`} value=${column.upper} onValue=${(upper) => set({ upper })} error=${problemAt(id + "-upper")} />
    </div>`;
}
