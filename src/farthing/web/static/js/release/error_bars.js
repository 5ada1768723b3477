// Many cells beside each other: a dot for each value, a line as long as its interval.

import { html } from "../../vendor/preact.js";
import { BottomAxis, LeftAxis } from "../charts/axis.js";
import { Figure } from "../charts/figure.js";
import { extent, linear } from "../charts/scale.js";

const HEIGHT = 240;
const LEFT = 56;
const FOOT = 40;
const LETTER = 6.6; // pixels, of the axis' font
const LONGEST = 22; // letters of a label; the table has all of them

const cut = (label = "") => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label);

/** Rows {label, value, lower, upper} in their order, from left to right. */
export function ErrorBars({ title, description, rows, table }) {
  const draw = (width) => {
    const ground = HEIGHT - FOOT;
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

/** The places whose labels are written: the first and a few more, evenly. */
function labelled(count, most) {
  const step = Math.max(1, Math.ceil(count / most));
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => at * step);
}
