// The fields of a publication as the server describes them: an empty form, its controls, and what is sent.
import { html } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { CheckField, SelectField, TextArea, TextField, useId } from "../components/field.js";

/** The value of a field that nobody has filled in. */
function empty({ kind, parts, row }) {
  if (kind === "choices") return [];
  if (kind === "number") return "1";
  if (kind !== "table") return "";
  const one = Object.fromEntries(parts.map((part) => [part.name, ""]));
  return row ? [one] : one;
}

/** A form of these fields, with what was said before. */
export function formOf(fields, said = {}) {
  return Object.fromEntries(
    fields.map((field) => [field.name, field.name in said ? shown(field, said) : empty(field)]),
  );
}

/** What was said in a field, as its control has it. */
function shown(field, said) {
  const value = said[field.name];
  const filled = (one) => ({ ...empty({ ...field, row: "" }), ...one });
  if (field.kind === "lines") return value.join("\n");
  if (field.kind === "number") return String(value);
  if (field.kind !== "table") return value;
  if (!field.row) return value ? filled(value) : empty(field);
  return value.length ? value.map(filled) : empty(field);
}

/** What the server takes: without empty fields. */
export function bodyOf(fields, form) {
  const pairs = fields.map((field) => [field.name, sent(field, form[field.name])]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== null));
}

function sent({ kind, parts, row }, value) {
  if (kind === "choices") return value;
  if (kind === "lines") {
    const lines = value.split("\n").map((one) => one.trim());
    return lines.filter(Boolean);
  }
  if (kind === "number") return /^\d{1,7}$/.test(value.trim()) ? Number(value) : value.trim() || null;
  if (kind !== "table") return value.trim() || null;
  const trimmed = (one) => Object.fromEntries(Object.entries(one).map(([name, text]) => [name, text.trim()]));
  if (row) return value.map(trimmed).filter((one) => Object.values(one).some(Boolean));
  const one = trimmed(value);
  return parts.every((part) => !part.required || one[part.name]) ? one : null;
}

/** All controls; those that a publication can do without are folded away. */
export function PublicationFields({ fields, form, onChange }) {
  const control = (field) =>
    html`<${Control} key=${field.name} field=${field} value=${form[field.name]} onValue=${(value) => onChange({ ...form, [field.name]: value })} />`;
  return html`
    ${fields.filter((field) => field.required).map(control)}
    <details class="more"><summary>Details that you may add</summary>
      <div class="stack">${fields.filter((field) => !field.required).map(control)}</div>
    </details>`;
}

function Control({ field, value, onValue }) {
  const { kind, label, hint, choices } = field;
  if (kind === "text") return html`<${TextArea} rows="3" ...${{ label, hint, value, onValue }} />`;
  if (kind === "lines") return html`<${TextArea} rows="2" ...${{ label, hint, value, onValue }} />`;
  if (kind === "choice")
    return html`<${SelectField} ...${{ label, hint, value, onValue }} options=${[["", "Choose one"], ...choices]} />`;
  if (kind === "choices") return html`<${Choices} ...${{ label, hint, value, onValue, choices }} />`;
  if (kind === "table") return html`<${Table} ...${{ field, value, onValue }} />`;
  return html`<${TextField} ...${{ label, hint, value, onValue }} />`;
}

/** Several of many. */
function Choices({ label, hint, value, onValue, choices }) {
  const mark = (name) => (on) =>
    onValue(choices.map(([one]) => one).filter((one) => (one === name ? on : value.includes(one))));
  return html`<fieldset class="field">
    <legend>${label}</legend>
    ${hint && html`<p class="hint">${hint}</p>`}
    <div class="choices in-columns">${choices.map(
      ([name, text]) =>
        html`<${CheckField} key=${name} label=${text} checked=${value.includes(name)} onValue=${mark(name)} />`,
    )}</div>
  </fieldset>`;
}

/** A row, or several: people with what belongs to each. */
function Table({ field, value, onValue }) {
  const id = useId(undefined, "rows");
  if (!field.row)
    return html`<${Row} legend=${field.label} hint=${field.hint} field=${field} value=${value} onValue=${onValue} />`;
  const replaced = (place) => (row) => onValue(value.map((one, at) => (at === place ? row : one)));
  const without = (place) => () => onValue(value.filter((_, at) => at !== place));
  const name = field.row.toLowerCase();
  return html`<div class="field" role="group" aria-labelledby=${id}>
    <p class="group-label" id=${id}>${field.label}</p>
    ${field.hint && html`<p class="hint">${field.hint}</p>`}
    ${value.map(
      (
        row,
        place,
      ) => html`<${Row} key=${place} legend=${`${field.row} ${place + 1}`} field=${field} value=${row} onValue=${replaced(place)}
        onRemove=${value.length > 1 ? without(place) : null} />`,
    )}
    <${Button} small onClick=${() => onValue([...value, ...empty(field)])}>${`Add another ${name}`}<//>
  </div>`;
}

function Row({ legend, hint, field, value, onValue, onRemove }) {
  return html`<fieldset class="field people-row">
    <legend>${legend}</legend>
    ${hint && html`<p class="hint">${hint}</p>`}
    <div class="side-by-side">${field.parts.map(
      (
        part,
      ) => html`<${TextField} key=${part.name} label=${part.label} hint=${part.hint} optional=${!part.required} value=${value[part.name]}
        onValue=${(text) => onValue({ ...value, [part.name]: text })} />`,
    )}</div>
    ${onRemove && html`<${Button} small kind="quiet" onClick=${onRemove}>${`Remove ${legend.toLowerCase()}`}<//>`}
  </fieldset>`;
}
