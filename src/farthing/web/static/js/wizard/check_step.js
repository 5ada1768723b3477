// Step 5: everything in words, checked by the server; nothing is written before the button is pressed.
import { html, useEffect } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { listText, privacy } from "../format.js";
import { odds } from "./budget_step.js";
import { sentenceAbout, useCheck } from "./declaration_check.js";
import { bodyOf, declarable } from "./declaration_draft.js";
import { asked, datasetOf, linkedPromise, linkSentences } from "./linked_tables.js";
import { promise } from "./unit_step.js";

// Which step mends what the server objects to.
const MENDED_IN = {
  name: [0, "the name"],
  source: [0, "the file"],
  account: [3, "the account"],
  epsilon: [3, "the budget"],
  delta: [3, "the budget"],
  unit: [1, "the person"],
  keys: [1, "the links"],
  table: [1, "the links"],
  tables: [1, "the links"],
  max_rows: [1, "the person"],
  sample: [1, "the sample"],
  neighbours: [1, "the person"],
  rows: [1, "the person"],
};

export function CheckStep({ draft, refusal, onChecked, to }) {
  const { data, error, again } = useCheck(bodyOf(draft), 0);
  useEffect(() => onChecked(Boolean(data?.ok)), [data]);
  const used = declarable(draft).filter((name) => draft.columns[name].kind !== "none");
  const left = declarable(draft).filter((name) => draft.columns[name].kind === "none");
  return html`
    <dl class="facts">
      <dt>Name</dt><dd>${draft.linked ? listText(asked(draft).map((table) => datasetOf(draft, table))) : draft.name}${draft.linked && html`<p class="muted small">One dataset for each file, with the columns of the files that it leads to. All of them have one budget.</p>`}</dd>
      ${
        draft.linked
          ? html`<dt>Files</dt><dd><code>${draft.tables.map(({ source }) => source).join(", ")}</code></dd>
      <dt>Links</dt><dd><ul class="plain">${linkSentences(draft).map((one) => html`<li key=${one}>${one}.</li>`)}</ul></dd>`
          : html`<dt>File</dt><dd><code>${draft.source}</code></dd>`
      }
      <dt>Promise</dt><dd>${draft.linked ? linkedPromise(draft) : data?.unit_sentence || promise(draft)}</dd>
      <dt>Columns</dt><dd><ul class="plain">${used.map((name) => html`<li key=${name}>${sentenceAbout(data, name) ?? html`<code>${name}</code>`}</li>`)}</ul>
        ${left.length > 0 && html`<p class="muted small">Left out: ${left.join(", ")}.</p>`}</dd>
      ${data?.account_sentence && html`<dt>Account</dt><dd>${data.account_sentence}</dd>`}
      <dt>Budget</dt><dd>${draft.account ? "That of the account, which stays as it is." : html`ε ${privacy(draft.epsilon)}, δ ${privacy(draft.delta)}. ${data?.budget_sentence || odds(draft.epsilon)}`}</dd>
    </dl>
    ${!data && !error && html`<${Loading} label="The server is checking it" lines=${2} />`}
    ${
      data?.notes.length > 0 &&
      html`<${Notice} tone="warn" live title=${data.notes.length === 1 ? "Think about this first" : "Think about these first"}>
      <ul>${data.notes.map((note) => html`<li key=${note}>${note}</li>`)}</ul>
    <//>`
    }
    ${data?.ok && !refusal && html`<${Notice} tone="good" live title="The declaration is valid"><p>The columns are in the file. No row was read, so whether the values fit is for farthing check to say. Nothing has been written yet.</p><//>`}
    ${
      data &&
      !data.ok &&
      html`<${Notice} tone="bad" live title="This does not fit yet">
      <ul>${data.problems.map(({ where, message }) => html`<li key=${where}>${where.replace(/^columns\./, "")}: ${message}.</li>`)}</ul>
      <div class="row">${placesOf(data.problems).map(([step, words]) => html`<${Button} key=${step} small onClick=${() => to(step)}>Change ${words}<//>`)}</div>
    <//>`
    }
    <${ErrorBox} error=${error} onRetry=${again} />
    <${ErrorBox} error=${refusal} title=${refusal?.code === "conflict" ? "It was not declared" : undefined} />`;
}

function placesOf(problems) {
  return [...new Map(problems.map(({ where }) => MENDED_IN[where] ?? [2, "the columns"]))];
}
