// Step 2: whom the promise protects.
import { html } from "../../vendor/preact.js";
import { CheckField, ChoiceField, NumberField, SelectField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { namingColumns, personColumns } from "./declaration_draft.js";

export function UnitStep({ draft, change, problemAt }) {
  const set = (part) => change((old) => ({ ...old, ...part }));
  const naming = namingColumns(draft);
  const columns = [["", "Choose …"], ...draft.sourceColumns.map(({ name }) => [name, name])];
  return html`
    <${ChoiceField} id="wizard-who" label="Where is one person in this file?" value=${draft.who} onValue=${(who) => set({ who, unit: draft.unit || (personColumns(draft)[0] ?? "") })} error=${problemAt("wizard-who")}
      hint="The promise holds for whole persons. If somebody has several rows and you say that one row is one person, only single rows are protected."
      options=${[
        ["row", "One row is one person", "Example: a survey in which everybody answered once."],
        [
          "column",
          "A column names the person",
          "Example: hospital visits with a patient number; one patient may have many rows.",
        ],
      ]} />
    ${
      draft.who === "row" &&
      naming.length > 0 &&
      html`<${Notice} tone="warn" live title="Can somebody have several rows?">
      <p>The file has <code>${naming[0]}</code>. If somebody may have several rows, choose “A column names the person”; otherwise only single rows are protected.</p>
    <//>`
    }
    ${
      draft.who === "column" &&
      html`
      <${SelectField} id="wizard-unit" label="Which column names the person?" value=${draft.unit} onValue=${(unit) => set({ unit })} options=${columns} error=${problemAt("wizard-unit")}
        hint="It is used to find the rows that belong together and is never published." />
      <${CheckField} id="wizard-finds-max-rows" checked=${draft.findsMaxRows} onValue=${(findsMaxRows) => set({ findsMaxRows })}
        label="Nobody knows how many rows of one person should count: find it later, for a small part of the budget" />
      ${
        !draft.findsMaxRows &&
        html`<${NumberField} id="wizard-max-rows" label="At most how many rows of one person count?" unit="rows" value=${draft.maxRows} onValue=${(maxRows) => set({ maxRows })} error=${problemAt("wizard-max-rows")}
        hint="If somebody has more, that many are chosen at random and the rest are not used. More rows keep more of the data but need more noise. Example: 3 if most people come up to three times; go by common knowledge, not by the file." />`
      }`
    }
    <details open=${draft.neighbours === "replace"}>
      <summary>Is it known who is in the file?</summary>
      <div class="stack inset">
        <${ChoiceField} id="wizard-neighbours" label="What must stay secret?" value=${draft.neighbours} onValue=${(neighbours) => set({ neighbours })}
          options=${[
            ["add-remove", "Even whether a person is in the file", "The usual choice, and the safe one if in doubt."],
            [
              "replace",
              "Only what the file says about a person",
              "For a file where everybody knows who is in it, such as all pupils of a school.",
            ],
          ]} />
        ${
          draft.neighbours === "replace" &&
          html`<${NumberField} id="wizard-rows" label="How many rows does the file have?" optional value=${draft.rows} onValue=${(rows) => set({ rows })} error=${problemAt("wizard-rows")}
          hint="Only if that number is public anyway." />`
        }
      </div>
    </details>
    ${
      draft.neighbours !== "replace" &&
      html`<details open=${draft.sample !== null}>
      <summary>Should releases read a secret sample only?</summary>
      <div class="stack inset">
        <${NumberField} id="wizard-sample" label="Share of the persons in a sample" optional value=${draft.sample} onValue=${(sample) => set({ sample })} error=${problemAt("wizard-sample")}
          hint="Every release draws a new sample, and nobody learns who is in it, so that each costs less. Its numbers are about the sample. Example: 0.1 for one person in ten. Leave it empty to read the whole file." />
      </div>
    </details>`
    }
    ${
      draft.who &&
      html`<${Notice} title="What is promised">
      <p>${promise(draft)}</p>
    <//>`
    }`;
}

/** The choice so far, as a promise to the persons in the data. */
export function promise({ who, unit, maxRows, findsMaxRows, neighbours }) {
  const most = findsMaxRows ? "as many as are found to be best" : `at most ${maxRows ?? "…"}`;
  const whose =
    who === "row"
      ? "Each row is a person of its own"
      : `All rows with the same ${unit || "…"} belong to one person, and ${most} of them count`;
  const what =
    neighbours === "replace"
      ? "what the file says about any one person"
      : "whether any one person is in the file, and with what values";
  return `${whose}. Anybody who sees everything that is ever published learns no more than the budget allows about ${what}. You choose the budget two steps on.`;
}
