// Values with their errors: a dot for each value, and a bar as long as its interval.

import { html } from "../../vendor/preact.js";
import { BottomAxis, LeftAxis } from "./axis.js";
import { Figure } from "./figure.js";
import { extent, linear, tickText } from "./scale.js";

const ROW = 30;
const ROWS_FOOT = 44;
const HEIGHT = 240; // of columns
const LEFT = 56;
const COLUMNS_FOOT = 40;
const LETTER = 6.6; // pixels, of the axis' font
const LONGEST = 22; // letters of a label; the table has all of them

/**
 * One small bar without axis, for a row of a table: [low, high] around `value`, on a `domain` shared by the rows.
 * It is a picture of numbers that stand beside it, so it is hidden from screen readers.
 */
export function InlineErrorBar({ low, high, value, expected, domain, width = 160 }) {
  const room = domain || extent([low, high, value, expected]);
  const across = linear(widened(room), [6, width - 6]);
  const bounded = Number.isFinite(low) && Number.isFinite(high);
  return html`
    <svg class="whisker" width=${width} height="22" viewBox="0 0 ${width} 22" aria-hidden="true">
      <line class="whisker-track" x1="0" x2=${width} y1="11" y2="11" />
      ${bounded ? html`<${Marks} low=${across(low)} high=${across(high)} middle=${11} />` : null}
      ${Number.isFinite(value) ? html`<circle class="whisker-value" r="4" cx=${across(value)} cy="11" />` : null}
      ${Number.isFinite(expected) ? html`<line class="whisker-expected" x1=${across(expected)} x2=${across(expected)} y1="2" y2="20" />` : null}
    </svg>`;
}

/**
 * Rows {label, value, lower, upper, expected?} below each other, with one axis; labels stand above their bars. `bars`
 * draws each value as a length from zero, `domain` is what the axis shows at least.
 */
export function ErrorBarRows({ title, description, rows, label, table, note, busy, bars = false, domain = [] }) {
  const draw = (width) => {
    const numbers = rows.flatMap((row) => [row.value, row.lower, row.upper, row.expected]);
    const room = extent([...numbers, ...domain, ...(bars ? [0] : [])]);
    const across = linear(bars ? upwards(room) : widened(room), [8, width - 12], width < 420 ? 4 : 6);
    const ground = rows.length * (ROW + 12) + 8;
    return {
      height: ground + ROWS_FOOT,
      marks: html`
        <g>
          <${BottomAxis} scale=${across} at=${ground} left=${8} right=${width - 12} label=${label} grid=${ground} />
          ${rows.map((row, place) => {
            const top = place * (ROW + 12);
            const middle = top + 30;
            return html`
              <g key=${place}>
                <text class="chart-row" x="8" y=${top + 16}>${row.label}</text>
                ${bars && Number.isFinite(row.value) ? html`<rect class="mark-value" x=${Math.min(across(0), across(row.value))} y=${middle - 7} width=${Math.abs(across(row.value) - across(0))} height="14" />` : null}
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

/** Rows {label, value, lower, upper} beside each other, from left to right: for many of them. */
export function ErrorBarColumns({ title, description, rows, table, bars = false }) {
  const draw = (width) => {
    const ground = HEIGHT - COLUMNS_FOOT;
    const [low, high] = extent(rows.flatMap((row) => [row.value, row.lower, row.upper, 0]));
    const up = linear([low, high === low ? low + 1 : high], [ground, 14], 5);
    const across = linear([0, rows.length], [LEFT, width - 8]);
    const middle = (place) => across(place + 0.5);
    const broadest = LETTER * Math.max(...rows.map((row) => cut(row.label).length)) + 12;
    const named = (place) => middle(place);
    named.ticks = labelled(rows.length, Math.max(1, Math.floor((width - LEFT) / (1.5 * broadest))));
    return {
      height: HEIGHT,
      marks: html`
        <g>
          <${LeftAxis} scale=${up} at=${LEFT} top=${14} bottom=${ground} grid=${width - LEFT - 8} />
          <${BottomAxis} scale=${named} at=${ground} left=${LEFT} right=${width - 8} text=${(place) => cut(rows[place]?.label)} />
          ${
            bars
              ? rows.map((row, place) =>
                  Number.isFinite(row.value)
                    ? html`<rect key=${place} class="mark-value" x=${across(place + 0.1)} width=${across(0.8) - across(0)} y=${Math.min(up(0), up(row.value))} height=${Math.abs(up(row.value) - up(0))} />`
                    : null,
                )
              : null
          }
          <g class=${rows.length > 40 ? "whisker-marks thin" : "whisker-marks"}>
            ${rows.map((row, place) =>
              Number.isFinite(row.lower) && Number.isFinite(row.upper)
                ? html`<line key=${place} x1=${middle(place)} x2=${middle(place)} y1=${up(row.lower)} y2=${up(row.upper)} />`
                : null,
            )}
          </g>
          ${rows.map((row, place) =>
            Number.isFinite(row.value)
              ? html`<circle key=${place} class="whisker-value" r=${rows.length > 60 ? 2 : 3.5} cx=${middle(place)} cy=${up(row.value)}><title>${row.label}</title></circle>`
              : null,
          )}
        </g>`,
    };
  };
  return html`<${Figure} ...${{ title, description, draw, table }} />`;
}

function Marks({ low, high, middle }) {
  return html`
    <g class="whisker-marks">
      <line x1=${low} x2=${high} y1=${middle} y2=${middle} />
      <line x1=${low} x2=${low} y1=${middle - 5} y2=${middle + 5} />
      <line x1=${high} x2=${high} y1=${middle - 5} y2=${middle + 5} />
    </g>`;
}

/** A range that keeps zero at its end, with room beyond the other. */
function upwards([low, high]) {
  const room = (high - low) * 0.05 || 1;
  return [low < 0 ? low - room : low, high + room];
}

function widened([low, high]) {
  const room = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

/** The places whose labels are written: the first and a few more, evenly. */
function labelled(count, most) {
  const step = Math.max(1, Math.ceil(count / most));
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => at * step);
}

const cut = (label = "") => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label);
