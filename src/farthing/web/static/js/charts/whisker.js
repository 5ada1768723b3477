// Values with their error: a dot, a bar from end to end, and beside it what was expected.

import { html } from "../../vendor/preact.js";
import { BottomAxis } from "./axis.js";
import { Figure } from "./figure.js";
import { extent, linear, tickText } from "./scale.js";

const ROW = 30;
const FOOT = 44;

/**
 * One small whisker without axis, for a row of a table: [low, high] around `value`, on a `domain` shared by the rows.
 * It is a picture of numbers that stand beside it, so it is hidden from screen readers.
 */
export function Whisker({ low, high, value, expected, domain, width = 160 }) {
  const room = domain || extent([low, high, value, expected]);
  const across = linear(widened(room), [6, width - 6]);
  const drawn = Number.isFinite(low) && Number.isFinite(high);
  return html`
    <svg class="whisker" width=${width} height="22" viewBox="0 0 ${width} 22" aria-hidden="true">
      <line class="whisker-track" x1="0" x2=${width} y1="11" y2="11" />
      ${drawn ? html`<${Marks} low=${across(low)} high=${across(high)} middle=${11} />` : null}
      ${Number.isFinite(value) ? html`<circle class="whisker-value" r="4" cx=${across(value)} cy="11" />` : null}
      ${Number.isFinite(expected) ? html`<line class="whisker-expected" x1=${across(expected)} x2=${across(expected)} y1="2" y2="20" />` : null}
    </svg>`;
}

/** Rows {label, value, lower, upper, expected?} below each other, with one axis; labels stand above their bars. */
export function Whiskers({ title, description, rows, label, table, note, busy }) {
  const draw = (width) => {
    const numbers = rows.flatMap((row) => [row.value, row.lower, row.upper, row.expected]);
    const across = linear(widened(extent(numbers)), [8, width - 12], width < 420 ? 4 : 6);
    const ground = rows.length * (ROW + 12) + 8;
    return {
      height: ground + FOOT,
      marks: html`
        <g>
          <${BottomAxis} scale=${across} at=${ground} left=${8} right=${width - 12} label=${label} grid=${ground} />
          ${rows.map((row, place) => {
            const top = place * (ROW + 12);
            const middle = top + 30;
            return html`
              <g key=${place}>
                <text class="chart-row" x="8" y=${top + 16}>${row.label}</text>
                ${
                  Number.isFinite(row.lower) && Number.isFinite(row.upper)
                    ? html`<${Marks} low=${across(row.lower)} high=${across(row.upper)} middle=${middle} />`
                    : null
                }
                ${
                  Number.isFinite(row.value)
                    ? html`<circle class="whisker-value" r="4" cx=${across(row.value)} cy=${middle}><title>${row.label}: ${tickText(row.value)}</title></circle>`
                    : null
                }
                ${
                  Number.isFinite(row.expected)
                    ? html`<line class="whisker-expected" x1=${across(row.expected)} x2=${across(row.expected)} y1=${middle - 9} y2=${middle + 9} />`
                    : null
                }
              </g>`;
          })}
        </g>`,
    };
  };
  return html`<${Figure} ...${{ title, description, draw, table, note, busy }} />`;
}

function Marks({ low, high, middle }) {
  return html`
    <g class="whisker-marks">
      <line x1=${low} x2=${high} y1=${middle} y2=${middle} />
      <line x1=${low} x2=${low} y1=${middle - 5} y2=${middle + 5} />
      <line x1=${high} x2=${high} y1=${middle - 5} y2=${middle + 5} />
    </g>`;
}

function widened([low, high]) {
  const room = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}
