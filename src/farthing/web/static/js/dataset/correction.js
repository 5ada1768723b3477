// How a curator corrects a declaration that was wrong: what changes is shown first, and the ledger keeps it.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { NumberField, SelectField, TextArea, TextField } from "../components/field.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { parsed } from "../format.js";
import { useAction } from "../server_data.js";
import { categoriesOf } from "../wizard/declaration_draft.js";

const ROWS = "rows of one person"; // no name of a column that can be chosen: those are in quotation marks below

const EMPTY = { what: "", lower: "", upper: "", categories: "", most: null, reason: "" };

/** The form as it is when a column is chosen: as it is declared now. */
function chosen(what, column) {
  if (!column) return { ...EMPTY, what };
  const categories = (column.categories ?? []).map(String).join("\n");
  return { ...EMPTY, what, lower: String(column.lower ?? ""), upper: String(column.upper ?? ""), categories };
}

/** What is missing, as [{id, text}]. */
function missing(words, column) {
  const numbers = column?.kind === "integers" || column?.kind === "reals";
  return [
    !words.what && { id: "correct-what", text: "Say what was declared wrongly." },
    numbers && parsed(words.lower) === null && { id: "correct-lower", text: "Give the lowest value as a number." },
    numbers && parsed(words.upper) === null && { id: "correct-upper", text: "Give the highest value as a number." },
    column?.kind === "categories" &&
      categoriesOf(words.categories).length === 0 && { id: "correct-categories", text: "List the possible values." },
    words.what === ROWS &&
      !(Number.isInteger(words.most) && words.most >= 1) && { id: "correct-most", text: "Give a whole number from 1." },
    words.reason.trim() === "" && { id: "correct-reason", text: "Say why: whoever reads the ledger sees it." },
  ].filter(Boolean);
}

/** The body of POST /datasets/{name}/corrections/check. */
function bodyOf(words, column) {
  if (!column) return { max_rows: words.most };
  const day = column.kind === "dates";
  if (column.kind !== "categories") {
    const range = [words.lower, words.upper].map((one) => (day ? one : parsed(one)));
    return { columns: { [column.name]: { range } } };
  }
  const listed = categoriesOf(words.categories);
  const whole = column.categories.every((one) => typeof one === "number");
  return { columns: { [column.name]: { categories: whole ? listed.map(Number) : listed } } };
}

export function CorrectionForm({ data, path, reload }) {
  const columns = data.schema.filter((one) => one.kind !== "flags");
  const [words, setWords] = useState(EMPTY);
  const [seen, setSeen] = useState(null);
  const { attempt, checked, reset } = useAttempts();
  const column = columns.find((one) => `“${one.name}”` === words.what);
  const set = (part) => {
    setSeen(null);
    setWords((old) => ({ ...old, ...part }));
  };
  const choose = (what) => {
    setSeen(null);
    setWords(
      chosen(
        what,
        columns.find((one) => `“${one.name}”` === what),
      ),
    );
  };
  const [look, looking, unseen] = useAction(async () => {
    setSeen(await post(`${path}/corrections/check`, bodyOf(words, column)));
  });
  const [correct, busy, refusal] = useAction(async () => {
    const made = await post(`${path}/corrections`, { ...bodyOf(words, column), reason: words.reason.trim() });
    toast(`It is corrected: entry ${made.entry} of the ledger says so.`);
    setWords(EMPTY);
    setSeen(null);
    reset();
    reload();
  });
  const { problems, problemAt, submit } = checked(missing(words, column), look);
  const options = [
    ["", "Choose …"],
    ...columns.map(({ name }) => [`“${name}”`, name]),
    ...(data.unit.length ? [[ROWS, "how many rows of one person count"]] : []),
  ];
  return html`<${Card} title="Correct the declaration">
    <div class="stack">
      <p>Bounds or categories that were declared wrongly are corrected here. The budget stays as it is, and so does whom it protects. Go by common knowledge, not by the rows.</p>
      <details class="more"><summary>Correct something</summary>
        <form class="stack narrow" onSubmit=${submit} novalidate>
          <${ErrorSummary} problems=${problems} attempt=${attempt} />
          <${SelectField} id="correct-what" label="What was declared wrongly?" value=${words.what} onValue=${choose} options=${options} error=${problemAt("correct-what")} />
          ${column && column.kind !== "categories" && html`<${Bounds} column=${column} words=${words} set=${set} problemAt=${problemAt} />`}
          ${column?.kind === "categories" && html`<${TextArea} id="correct-categories" label="Which values can it have?" hint="One per line, or separated by commas." rows="4" value=${words.categories} onValue=${(categories) => set({ categories })} error=${problemAt("correct-categories")} />`}
          ${words.what === ROWS && html`<${NumberField} id="correct-most" label="At most how many rows of one person count?" unit="rows" value=${words.most} onValue=${(most) => set({ most })} error=${problemAt("correct-most")} />`}
          <${TextField} id="correct-reason" label="Why?" hint="It stays in the ledger. Example: some are older than 110." value=${words.reason} onValue=${(reason) => set({ reason })} error=${problemAt("correct-reason")} maxlength="200" autocomplete="off" />
          <${ErrorBox} error=${unseen ?? refusal} />
          <div><${Button} type="submit" kind=${seen ? "" : "primary"} busy=${looking}>See what it changes<//></div>
          ${seen && html`<${Preview} seen=${seen} busy=${busy} onCorrect=${correct} />`}
        </form>
      </details>
    </div>
  <//>`;
}

function Bounds({ column, words, set, problemAt }) {
  const day = column.kind === "dates";
  const shape = day ? { type: "date" } : { class: "number", inputmode: "decimal", autocomplete: "off" };
  return html`<div class="pair">
    <${TextField} id="correct-lower" label=${day ? "First day" : "Lowest"} value=${words.lower} onValue=${(lower) => set({ lower })} error=${problemAt("correct-lower")} ...${shape} />
    <${TextField} id="correct-upper" label=${day ? "Last day" : "Highest"} value=${words.upper} onValue=${(upper) => set({ upper })} error=${problemAt("correct-upper")} ...${shape} />
  </div>`;
}

function Preview({ seen, busy, onCorrect }) {
  return html`<div class="stack" id="correction-preview" aria-live="polite">
    <${Table} caption="What changes" rows=${seen.changes} rowKey=${(one) => one.what} columns=${[
      { key: "what", title: "Declared", head: true, cell: (one) => html`<code>${one.what}</code>` },
      { key: "before", title: "Until now" },
      { key: "after", title: "From now on" },
    ]} />
    <ul>${seen.later.map((sentence) => html`<li>${sentence}</li>`)}</ul>
    <div><${Button} kind="primary" busy=${busy} onClick=${onCorrect}>Correct it<//></div>
  </div>`;
}
