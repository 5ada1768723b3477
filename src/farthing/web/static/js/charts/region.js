// The privacy region: how often an attacker who guesses must be wrong, in either of the two ways.

import { html } from "../../vendor/preact.js";
import { BottomAxis, LeftAxis } from "./axis.js";
import { Figure } from "./figure.js";
import { linear, pathOf } from "./scale.js";
import { theoremOf } from "./theorems.js";

const TOP = 30;
const BOTTOM = 44;
const LEFT = 38;
const RIGHT = 10;

/**
 * Lower boundaries of `regions`: [{theorem, points: [[P_FA, P_MD], ..]}], or with a name and a mark of their own; the
 * one named `filled` is filled up to the diagonal of blind guesses, or the first if that is null.
 */
export function Region({ title, description, regions, filled = "optimal", table, note, busy }) {
  const draw = (width) => {
    const height = width - LEFT - RIGHT + TOP + BOTTOM;
    const across = linear([0, 1], [LEFT, width - RIGHT], 5);
    const up = linear([0, 1], [height - BOTTOM, TOP], 5);
    const pixel = ([alarm, miss]) => [across(alarm), up(miss)];
    const looks = regions.map((one) => (one.mark ? { ...one, key: one.name } : theoremOf(one.theorem)));
    const place = filled === null ? 0 : looks.findIndex((look) => look.key === filled);
    const main = regions[place];
    const best = main ? bestGuess(main.points) : null;
    return {
      height,
      marks: html`
        <g>
          <${BottomAxis} scale=${across} at=${height - BOTTOM} left=${LEFT} right=${width - RIGHT} label="false alarms, P_FA" />
          <${LeftAxis} scale=${up} at=${LEFT} top=${TOP} bottom=${height - BOTTOM} label="misses, P_MD" />
          ${main ? html`<path class="mark-area ${looks[place].mark}" d=${`${pathOf(lowerPart(main.points).map(pixel))}Z`} />` : null}
          <line class="blind-line" x1=${across(0)} y1=${up(1)} x2=${across(1)} y2=${up(0)} />
          <text class="chart-word" x=${across(0.56)} y=${up(0.52)} aria-hidden="true">blind guessing</text>
          <circle class="corner-dot" r="4" cx=${across(0)} cy=${up(0)} />
          ${regions.map(
            (one, at) => html`
            <path key=${looks[at].key} class="mark-line ${looks[at].mark}" data-region=${looks[at].key}
              d=${pathOf(lowerPart(one.points).map(pixel))} />`,
          )}
          <text class="chart-word" x=${across(0) + 9} y=${up(0) - 8} aria-hidden="true">never wrong</text>
          ${
            best
              ? html`
            <circle class="mark-dot ${looks[place].mark}" r="5" cx=${across(best[0])} cy=${up(best[1])}>
              <title>the best guess</title>
            </circle>`
              : null
          }
        </g>`,
    };
  };
  const legend = regions.map((one) => (one.mark ? one : theoremOf(one.theorem)));
  return html`<${Figure} ...${{ title, description, draw, table, legend, note, busy, most: 460 }} />`;
}

/** The boundary from one end of the diagonal to the other, from left to right. */
export function lowerPart(points) {
  const ends = [
    [0, 1],
    [1, 0],
  ]; // blind guesses are always in reach; a leak makes the boundary begin below them
  return [...ends, ...points]
    .filter(([alarm, miss]) => alarm + miss <= 1 + 1e-9)
    .sort((one, other) => one[0] - other[0] || other[1] - one[1]);
}

/** Where a guesser is wrong least often when both tables are equally likely. */
export function bestGuess(points) {
  const lower = lowerPart(points);
  if (lower.length === 0) return null;
  return lower.reduce((best, point) => (point[0] + point[1] < best[0] + best[1] - 1e-12 ? point : best));
}

/** How often, out of 100, the best guess is right at most; rounded up, for doubt is on the attacker's side. */
export function rightInHundred(points) {
  const best = bestGuess(points);
  if (!best) return null;
  return Math.min(100, Math.max(50, Math.ceil(100 * (1 - (best[0] + best[1]) / 2) - 1e-6)));
}
