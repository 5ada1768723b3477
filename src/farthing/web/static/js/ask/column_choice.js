// Which columns may be asked about, and how finely they are cut.

import { html } from "../../vendor/preact.js";
import { CheckField, NumberField } from "../components/field.js";
import { count, plural } from "../format.js";
import { canBeCut, cellsOf, described, mustBeCut } from "./column_cells.js";

export function ColumnChoice({ schema, form, change, cells, problem }) {
  const turn = (name, on) =>
    change({ chosen: on ? [...form.chosen, name] : form.chosen.filter((one) => one !== name) });
  const cut = (name, parts) =>
    change({ bins: { ...form.bins, [name]: parts === null ? null : Math.max(1, Math.round(parts)) } });
  return html`
    <fieldset class="ask-columns">
      <legend>What will you ask about?</legend>
      <p class="hint">Fewer columns give better answers for the same price. A question may use any of those chosen.</p>
      <div class="choices">
        ${schema.map((column) => {
          const chosen = form.chosen.includes(column.name);
          return html`
            <div key=${column.name}>
              <${CheckField} label=${column.name} hint=${described(column)} checked=${chosen} onValue=${(on) => turn(column.name, on)} />
              ${
                chosen && canBeCut(column) && (mustBeCut(column) || cellsOf(column, null) > 200)
                  ? html`
                <div class="ask-cut">
                  <${NumberField} label=${`Cut ${column.name} into`} unit="equal parts" optional=${!mustBeCut(column)}
                    value=${form.bins[column.name] ?? null} onValue=${(parts) => cut(column.name, parts)}
                    hint="Questions then keep to the edges of the parts." />
                </div>`
                  : null
              }
            </div>`;
        })}
      </div>
      <p class=${problem ? "field-error" : "hint"} role="status">
        ${problem ?? `${plural(form.chosen.length, "column")}, ${count(cells)} combinations of values.`}
      </p>
    </fieldset>`;
}
