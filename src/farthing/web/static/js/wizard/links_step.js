// Step 2 for several files: who the person is, and which column of each file leads to another.
import { html } from "../../vendor/preact.js";
import { NumberField, SelectField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { withUnit } from "./declaration_draft.js";
import { above, children, columnOf, placesOf, tableOf } from "./linked_tables.js";

export function LinksStep({ draft, change, problemAt }) {
  const places = draft.sourceColumns.map(({ name }) => name);
  const set = (table, part) =>
    change((old) => ({ ...old, keys: { ...old.keys, [table]: { ...old.keys[table], ...part } } }));
  const others = (table) => places.filter((place) => tableOf(place) !== table);
  return html`
    <${SelectField} id="wizard-unit" label="Which column names the person?" value=${draft.unit} onValue=${(unit) => change((old) => withUnit(old, unit))} options=${[["", "Choose …"], ...places.map((place) => [place, place])]} error=${problemAt("wizard-unit")}
      hint="Choose it in the file that has one row for each person. It is used to find the rows that belong together and is never published." />
    ${
      draft.unit &&
      children(draft).map(
        (table) => html`<fieldset class="card wizard-column" key=${table}>
      <legend class="unseen">Table ${table}</legend>
      <h3 aria-hidden="true"><code>${table}</code></h3>
      <div class="pair">
        <${SelectField} id=${`link-${table}-column`} label=${html`<span class="unseen">${table}: </span>This column`} value=${draft.keys[table]?.column ?? ""} onValue=${(column) => set(table, { column })}
          options=${[["", "Choose …"], ...placesOf(draft, table).map((place) => [columnOf(place), columnOf(place)])]} error=${problemAt(`link-${table}-column`)} />
        <${SelectField} id=${`link-${table}-target`} label=${html`<span class="unseen">${table}: </span>leads to a row with the same value in`} value=${draft.keys[table]?.target ?? ""} onValue=${(target) => set(table, { target })}
          options=${[["", "Choose …"], ...others(table).map((place) => [place, place])]} error=${problemAt(`link-${table}-target`)} />
      </div>
      <${NumberField} id=${`link-${table}-rows`} label=${html`<span class="unseen">${table}: </span>At most how many of its rows count for one person?`} optional unit="rows" value=${Number.isNaN(draft.bounds[table]) ? null : (draft.bounds[table] ?? null)} onValue=${(most, text) => change((old) => ({ ...old, bounds: { ...old.bounds, [table]: bound(most, text) } }))} error=${problemAt(`link-${table}-rows`)}
        hint="More rows keep more of the data but need more noise. Go by common knowledge, not by the file. Leave it empty if nobody asks about its rows by themselves, but only about people." />
    </fieldset>`,
      )
    }
    ${draft.unit && html`<${Promised} draft=${draft} />`}`;
}

/** A bound as it was typed: null for none, and NaN for what is no number, which the step refuses. */
const bound = (most, text) => (most === null && text.trim() !== "" ? Number.NaN : most);

/** Where each table leads, as a list, and what is promised. */
function Promised({ draft }) {
  const path = (table) => [table, ...above(draft, table)].join(" → ");
  const lost = children(draft).filter((table) => !above(draft, table).includes(tableOf(draft.unit)));
  return html`<${Notice} tone=${lost.length ? "warn" : "info"} live title=${lost.length ? "Not every file leads to a person yet" : "What is promised"}>
    <ul class="plain" id="links">${children(draft).map((table) => html`<li key=${table}><code>${path(table)}</code></li>`)}</ul>
    ${
      lost.length > 0
        ? html`<p>The rows of ${lost.join(" and ")} must lead to <code>${tableOf(draft.unit)}</code>, so that everybody in them is protected.</p>`
        : html`<p>All rows that lead to one <code>${draft.unit}</code>, in all of these files, belong to one person. Anybody who sees everything that is ever published learns no more than one budget allows about whether any one person is in them, and with what values. A row that leads to nobody, or to two people, is not used.</p>`
    }
  <//>`;
}
