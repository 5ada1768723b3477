// Lengths beside words: what each theorem asks for, what each statistic costs.

import { html } from "../../vendor/preact.js";
import { Figure } from "./figure.js";
import { linear, tickText } from "./scale.js";

const ROW = 40;

/** Rows {label, value, mark, text?} as bars from zero; a value that is missing says why instead (`text`). */
export function Bars({ title, description, rows, table, note, busy, text = tickText }) {
  const draw = (width) => {
    const values = rows.map((row) => row.value).filter(Number.isFinite);
    const across = linear([0, Math.max(1e-12, ...values)], [0, width - 64]);
    return {
      height: rows.length * ROW + 4,
      marks: html`
        <g>
          ${rows.map((row, place) => {
            const top = place * ROW;
            const known = Number.isFinite(row.value);
            return html`
              <g key=${row.label}>
                <text class="chart-row" x="0" y=${top + 13}>${row.label}</text>
                ${known ? html`<rect class="mark-bar ${row.mark || "bar-plain"}" x="0" y=${top + 18} width=${Math.max(2, across(row.value))} height="14" />` : null}
                <text class="chart-number" x=${known ? Math.max(2, across(row.value)) + 6 : 0} y=${top + 30}>
                  ${known ? text(row.value) : row.text || "—"}
                </text>
              </g>`;
          })}
        </g>`,
    };
  };
  return html`<${Figure} ...${{ title, description, draw, table, note, busy }} />`;
}
