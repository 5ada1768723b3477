// A grey shape of what is coming; screen readers hear one sentence.
import { html } from "../../vendor/preact.js";

export function Loading({ label = "Loading", lines = 4 }) {
  return html`<div class="loading" role="status">
    <span class="unseen">${label} …</span>
    ${Array.from({ length: lines }, (_, at) => html`<div class="skeleton" key=${at} aria-hidden="true"></div>`)}
  </div>`;
}
