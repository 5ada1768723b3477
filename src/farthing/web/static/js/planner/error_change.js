// How much an error has changed since the last edit of the plan.

import { html } from "../../vendor/preact.js";
import { percent } from "../format.js";

const LEAST = 0.001; // less is no change that anybody sees

export function ErrorChange({ before, now }) {
  const known = Number.isFinite(before) && Number.isFinite(now) && before > 0;
  const change = known ? now / before - 1 : 0;
  if (Math.abs(change) < LEAST) return html`<span class="error-change"></span>`;
  const size = percent(100 * Math.abs(change));
  return html`
    <span class=${`error-change number ${change > 0 ? "worse" : "better"}`}>
      <span aria-hidden="true">${change > 0 ? "▲" : "▼"}${size}</span>
      <span class="unseen">${size} ${change > 0 ? "larger" : "smaller"} than before the last change</span>
    </span>`;
}
