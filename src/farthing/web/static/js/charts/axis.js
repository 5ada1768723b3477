// Axes: thin lines, few numbers, a name in words.

import { html } from "../../vendor/preact.js";
import { tickText } from "./scale.js";

/** An axis along the bottom, with faint lines upward when `grid` is the height to fill. */
export function BottomAxis({ scale, at, left, right, label, grid = 0, text = tickText }) {
  return html`
    <g class="axis" aria-hidden="true">
      <line class="axis-line" x1=${left} x2=${right} y1=${at} y2=${at} />
      ${scale.ticks.map(
        (tick) => html`
        <g key=${tick}>
          ${grid ? html`<line class="axis-grid" x1=${scale(tick)} x2=${scale(tick)} y1=${at - grid} y2=${at} />` : null}
          <line class="axis-line" x1=${scale(tick)} x2=${scale(tick)} y1=${at} y2=${at + 4} />
          <text class="axis-text" x=${scale(tick)} y=${at + 17} text-anchor=${anchorOf(scale(tick), left, right)}>${text(tick)}</text>
        </g>`,
      )}
      ${label ? html`<text class="axis-label" x=${(left + right) / 2} y=${at + 36} text-anchor="middle">${label}</text>` : null}
    </g>`;
}

/** An axis at the left; its name stands on top, lying, because standing text is hard to read. */
export function LeftAxis({ scale, at, top, bottom, label, grid = 0, text = tickText }) {
  return html`
    <g class="axis" aria-hidden="true">
      <line class="axis-line" x1=${at} x2=${at} y1=${top} y2=${bottom} />
      ${scale.ticks.map(
        (tick) => html`
        <g key=${tick}>
          ${grid ? html`<line class="axis-grid" x1=${at} x2=${at + grid} y1=${scale(tick)} y2=${scale(tick)} />` : null}
          <text class="axis-text" x=${at - 6} y=${scale(tick) + 4} text-anchor="end">${text(tick)}</text>
        </g>`,
      )}
      ${label ? html`<text class="axis-label" x="0" y=${top - 10} text-anchor="start">${label}</text>` : null}
    </g>`;
}

function anchorOf(pixel, left, right) {
  if (pixel > right - 12) return "end";
  return pixel < left + 6 ? "start" : "middle";
}
