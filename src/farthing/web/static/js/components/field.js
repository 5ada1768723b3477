// Labelled inputs. Each has a label, may have a hint, and says its own error beside it.
import { html, useRef, useState } from "../../vendor/preact.js";
import { COMMA, parsed } from "../format.js";

let numbered = 0;

/** An id that stays the same for the life of a component. */
export function useId(given, prefix = "field") {
  const id = useRef(null);
  id.current ??= given ?? `${prefix}-${++numbered}`;
  return given ?? id.current;
}

const described = (id, hint, error) => [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || null;

/** Label, hint and error around any control; children is a function of the control's attributes. */
export function Field({ id: given, label, hint, error, optional = false, children }) {
  const id = useId(given);
  return html`<div class="field">
    <label for=${id}>${label}${optional && html` <span class="muted">(optional)</span>`}</label>
    ${hint && html`<p class="hint" id=${id + "-hint"}>${hint}</p>`}
    ${children({ id, "aria-describedby": described(id, hint, error), "aria-invalid": error ? "true" : null })}
    ${error && html`<p class="field-error" id=${id + "-error"}>${error}</p>`}
  </div>`;
}

/** <${TextField} label="Name" value=${name} onValue=${setName} /> */
export function TextField({ id, label, hint, error, optional, value, onValue, class: more = "", ...rest }) {
  return html`<${Field} ...${{ id, label, hint, error, optional }}>
    ${(control) => html`<input class=${`input ${more}`} type="text" value=${value} onInput=${(event) => onValue(event.target.value)} ...${control} ...${rest} />`}
  <//>`;
}

/** Many lines. */
export function TextArea({ id, label, hint, error, optional, value, onValue, ...rest }) {
  return html`<${Field} ...${{ id, label, hint, error, optional }}>
    ${(control) => html`<textarea class="input" value=${value} onInput=${(event) => onValue(event.target.value)} ...${control} ...${rest}></textarea>`}
  <//>`;
}

/**
 * A number; onValue(number | null, text): null while the text is empty or not a number.
 * The text a person types is left as it is until the number is changed from outside.
 */
export function NumberField({ id, label, hint, error, optional, value, onValue, unit, ...rest }) {
  const [text, setText] = useState(value === null || value === undefined ? "" : String(value));
  const content = parsed(text) === (value ?? null) ? text : String(value ?? "");
  const typed = (event) => {
    setText(event.target.value);
    onValue(parsed(event.target.value), event.target.value);
  };
  const comma = parsed(content) === null && content.includes(",") ? `Write it without a comma. ${COMMA}` : null;
  return html`<${Field} ...${{ id, label, hint, error: comma ?? error, optional }}>
    ${(control) => html`<div class="input-unit">
      <input class="input short number" type="text" inputmode="decimal" autocomplete="off" value=${content} onInput=${typed} ...${control} ...${rest} />
      ${unit && html`<span class="muted">${unit}</span>`}
    </div>`}
  <//>`;
}

/** options: [[value, text], ...] */
export function SelectField({ id, label, hint, error, optional, value, onValue, options, ...rest }) {
  return html`<${Field} ...${{ id, label, hint, error, optional }}>
    ${(
      control,
    ) => html`<select class="input" value=${value} onChange=${(event) => onValue(event.target.value)} ...${control} ...${rest}>
      ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`)}
    </select>`}
  <//>`;
}

/** A box to tick. */
export function CheckField({ id: given, label, hint, checked, onValue, ...rest }) {
  const id = useId(given, "check");
  return html`<label class="choice" for=${id}>
    <input type="checkbox" id=${id} checked=${checked} onChange=${(event) => onValue(event.target.checked)} ...${rest} />
    <span>${label}${hint && html`<br /><span class="hint">${hint}</span>`}</span>
  </label>`;
}

/** One of several; options: [[value, text, hint?], ...]. A fieldset, so that the question is read with each answer. */
export function ChoiceField({ id: given, label, hint, error, value, onValue, options }) {
  const id = useId(given, "choice");
  return html`<fieldset id=${id} tabindex="-1" aria-describedby=${described(id, hint, error)}>
    <legend>${label}</legend>
    ${hint && html`<p class="hint" id=${id + "-hint"}>${hint}</p>`}
    <div class="choices">${options.map(
      ([one, text, more]) => html`<label class="choice" key=${one}>
      <input type="radio" name=${id} value=${one} checked=${one === value} onChange=${() => onValue(one)} />
      <span>${text}${more && html`<br /><span class="hint">${more}</span>`}</span>
    </label>`,
    )}</div>
    ${error && html`<p class="field-error" id=${id + "-error"}>${error}</p>`}
  </fieldset>`;
}

/**
 * A slider whose ends are named. `valueText` is the value in words (read out as well); `log` spaces it by factors.
 * onValue is called while it moves.
 */
export function SliderField({
  id: given,
  label,
  hint,
  value,
  onValue,
  min,
  max,
  step = "any",
  left = "more private",
  right = "more accurate",
  valueText,
  log = false,
  ...rest
}) {
  const id = useId(given, "slider");
  const to = log ? Math.log : (x) => x;
  const back = log ? Math.exp : (x) => x;
  const moved = (event) => onValue(Math.min(max, Math.max(min, back(Number(event.target.value)))));
  const ticks = log ? (to(max) - to(min)) / 200 : step;
  return html`<div class="slider">
    <div class="slider-head"><label for=${id}>${label}</label>${valueText && html`<output class="number" for=${id}>${valueText}</output>`}</div>
    ${hint && html`<p class="hint" id=${id + "-hint"}>${hint}</p>`}
    <input type="range" id=${id} min=${to(min)} max=${to(max)} step=${ticks} value=${to(value)} onInput=${moved} aria-valuetext=${valueText} aria-describedby=${[hint && id + "-hint", id + "-ends"].filter(Boolean).join(" ")} ...${rest} />
    <div class="slider-ends" id=${id + "-ends"}><span>← ${left}</span><span>${right} →</span></div>
  </div>`;
}
