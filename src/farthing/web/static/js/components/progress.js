// How far something has come.
import { html } from "../../vendor/preact.js";

/** value: 0..1, or null while nobody knows. */
export function Progress({ value, label }) {
  const known = typeof value === "number" && Number.isFinite(value);
  return html`<div class="progress" role="status">
    <span>${label}${known && html` <span class="number muted">${Math.round(100 * value)}%</span>`}</span>
    <progress max="1" value=${known ? value : undefined} aria-label=${label}></progress>
  </div>`;
}

/** The steps of a form; those done can be gone back to. */
export function Steps({ steps, current, onStep }) {
  return html`<nav aria-label="Steps"><ol class="steps">
    ${steps.map(
      (title, at) => html`<li key=${title} class=${at < current ? "done" : ""}>
      ${
        at < current && onStep
          ? html`<button type="button" onClick=${() => onStep(at)} aria-label=${`${title}: done; go back to it`}>${title}</button>`
          : html`<span aria-current=${at === current ? "step" : null}>${title}</span>`
      }
    </li>`,
    )}
  </ol></nav>`;
}
