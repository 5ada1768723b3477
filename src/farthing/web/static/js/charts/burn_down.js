// A budget as it is used up: entry by entry, because clocks are not to be trusted with an account.

import { html } from "../../vendor/preact.js";
import { BottomAxis, LeftAxis } from "./axis.js";
import { Figure } from "./figure.js";
import { linear, tickText } from "./scale.js";

const TOP = 30;
const BOTTOM = 44;
const LEFT = 46;
const RIGHT = 10;
const HEIGHT = 260;

/** Steps of what was spent and of the budget; `points` are {sequence, spent, kind, total, sentence}. */
export function BurnDown({ title, description, total, points, table, busy }) {
  const draw = (width) => {
    const last = points.length ? points[points.length - 1].sequence + 1 : 1;
    const first = points.length ? points[0].sequence : 0;
    const highest = Math.max(total || 0, ...points.map((point) => Math.max(point.spent || 0, point.total || 0)), 1e-9);
    const across = linear([first, last], [LEFT, width - RIGHT], width < 420 ? 4 : 8);
    across.ticks = across.ticks.filter(Number.isInteger);
    const up = linear([0, highest * 1.05], [HEIGHT - BOTTOM, TOP], 4);
    const path = stairs(points, last, across, up);
    const ground = HEIGHT - BOTTOM;
    return {
      height: HEIGHT,
      marks: html`
        <g>
          <${LeftAxis} scale=${up} at=${LEFT} top=${TOP} bottom=${ground} label="privacy spent (epsilon)" grid=${width - RIGHT - LEFT} />
          <${BottomAxis} scale=${across} at=${ground} left=${LEFT} right=${width - RIGHT} label="entry of the ledger" text=${String} />
          ${path ? html`<path class="mark-area burn-spent" d=${`${path}L${across(last)},${ground}L${across(first)},${ground}Z`} />` : null}
          ${path ? html`<path class="mark-line burn-total" d=${stairs(points, last, across, up, "total")} />` : null}
          ${path ? html`<path class="mark-line burn-spent" d=${path} />` : null}
          ${points
            .filter((point) => point.kind === "refused")
            .map(
              (point) => html`
            <text key=${point.sequence} class="burn-refused" x=${across(point.sequence)} y=${up(point.spent) - 6} text-anchor="middle">
              ×<title>${point.sentence}</title>
            </text>`,
            )}
        </g>`,
    };
  };
  const legend = [
    { name: "spent", mark: "burn-spent" },
    { name: `budget, now ${tickText(total)}`, mark: "burn-total" },
  ];
  const note = points.some((point) => point.kind === "refused") ? "× marks what was refused; it spent nothing." : null;
  return html`<${Figure} ...${{ title, description, draw, table, legend, note, busy }} />`;
}

/** A line that moves at entries only: what was spent, or the budget as it stood. */
function stairs(points, last, across, up, key = "spent") {
  let path = "";
  points.forEach((point, place) => {
    const [right, height] = [across(point.sequence).toFixed(1), up(point[key] || 0).toFixed(1)];
    path += place === 0 ? `M${right},${height}` : `H${right}V${height}`;
  });
  return path ? `${path}H${across(last).toFixed(1)}` : "";
}
