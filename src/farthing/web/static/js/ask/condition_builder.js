// Help with a condition: press a column, press a value, and it stands in the question.

import { html, useState } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { SelectField, TextField } from "../components/field.js";
import { conditionText, operatorsFor } from "../planner/conditions.js";
import { cutOf, described, examplesFor } from "./column_cells.js";

const MOST_CHIPS = 24;

/** `add(word, text)` puts a condition into the question; `use(text)` replaces it. */
export function Builder({ columns, empty, add, use }) {
  const [chosen, choose] = useState(null);
  const [word, setWord] = useState("and");
  const column = columns.find((one) => one.name === chosen);
  return html`
    <div class="ask-builder">
      <h3>Examples</h3>
      <div class="ask-chips">
        ${examplesFor(columns).map(
          (text) => html`
          <button type="button" class="ask-chip" key=${text} onClick=${() => use(text)}><code>${text}</code></button>`,
        )}
      </div>
      <h3>Build a condition</h3>
      <div class="ask-chips" role="group" aria-label="Columns that may be asked about">
        ${columns.map(
          (one) => html`
          <button type="button" class="ask-chip" key=${one.name} aria-pressed=${one.name === chosen ? "true" : "false"}
            onClick=${() => choose(one.name === chosen ? null : one.name)}>
            <strong>${one.name}</strong> <span class="muted">${described(one)}</span>
          </button>`,
        )}
      </div>
      ${
        column
          ? html`
        <div class="ask-values" role="group" aria-label=${`Conditions about ${column.name}`}>
          ${
            empty
              ? null
              : html`
            <${SelectField} label="Join with" value=${word} onValue=${setWord}
              options=${[["and", "and: both must hold"], ["or", "or: one is enough"]]} />`
          }
          <${Values} column=${column} add=${(text) => add(word, text)} key=${column.name} />
        </div>`
          : html`<p class="hint">Press a column to say something about it.</p>`
      }
    </div>`;
}

function Values({ column, add }) {
  if (column.kind === "flags") {
    return html`<div class="ask-chips">
      ${operatorsFor(column).map(
        ([operator, words]) => html`
        <button type="button" class="ask-chip" key=${operator} onClick=${() => add(conditionText({ column, operator }))}>${column.name} ${words}</button>`,
      )}
    </div>`;
  }
  if (column.kind === "categories" && (column.categories || []).length <= MOST_CHIPS) {
    return html`<div class="ask-chips">
      ${column.categories.map(
        (value) => html`
        <button type="button" class="ask-chip" key=${value} onClick=${() => add(conditionText({ column, operator: "=", value }))}>${String(value)}</button>`,
      )}
    </div>`;
  }
  return html`<${Comparison} column=${column} add=${add} />`;
}

function Comparison({ column, add }) {
  const operators = operatorsFor(column);
  const listed = column.kind === "categories";
  const [operator, setOperator] = useState(operators[0][0]);
  const [value, setValue] = useState(String(listed ? column.categories[0] : cutOf(column)));
  const text = conditionText({ column, operator, value: value.trim() });
  return html`
    <div class="ask-comparison">
      <${SelectField} label=${column.name} value=${operator} onValue=${setOperator} options=${operators} />
      ${
        listed
          ? html`<${SelectField} label="Value" value=${value} onValue=${setValue} options=${column.categories.map((one) => [String(one), String(one)])} />`
          : html`<${TextField} label="Value" class="short number" inputmode=${column.kind === "dates" ? "text" : "decimal"} value=${value} onValue=${setValue} />`
      }
      <${Button} disabled=${!text} onClick=${() => add(text)}>Add it<//>
    </div>
    ${
      Array.isArray(column.edges) && column.edges.length > 1
        ? html`
      <p class="hint">Cut at ${column.edges.slice(0, 12).join(", ")}${column.edges.length > 12 ? ", …" : ""}: questions keep to these numbers.</p>`
        : null
    }`;
}
