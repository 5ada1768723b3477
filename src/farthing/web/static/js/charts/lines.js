// Several lines over one axis, with a mark where the reader stands.

import { html } from "../../vendor/preact.js";
import { BottomAxis, LeftAxis } from "./axis.js";
import { Figure } from "./figure.js";
import { extent, linear, logarithmic, pathOf, tickText } from "./scale.js";

const TOP = 30;
const BOTTOM = 44;
const LEFT = 46;
const RIGHT = 10;

/**
 * Lines of `series`: [{name, mark, points: [[x, y], ..]}].
 * `x` and `y` are {label, log}; `at` is the x where a vertical line and dots stand.
 */
export function Lines({ title, description, series, x, y, at, table, note, busy, height = 300 }) {
  const draw = (width) => {
    const scales = scalesOf(series, x, y, width, height);
    const here = at === undefined || at === null ? null : scales.across(at);
    return {
      height,
      marks: html`
        <g>
          <${BottomAxis} scale=${scales.across} at=${height - BOTTOM} left=${LEFT} right=${width - RIGHT} label=${x.label} />
          <${LeftAxis}
            scale=${scales.up} at=${LEFT} top=${TOP} bottom=${height - BOTTOM} label=${y.label} grid=${width - RIGHT - LEFT} />
          ${here === null ? null : html`<line class="here-line" x1=${here} x2=${here} y1=${TOP} y2=${height - BOTTOM} />`}
          ${series.map(
            (one) => html`
            <path key=${one.name} class="mark-line ${one.mark}" data-line=${one.name}
              d=${pathOf(one.points.map((point) => pixelOf(point, scales)))} />`,
          )}
          ${
            here === null
              ? null
              : series.map((one) => {
                  const value = valueAt(one.points, at);
                  return value === null
                    ? null
                    : html`
              <circle key=${one.name} class="mark-dot ${one.mark}" r="4" cx=${here} cy=${scales.up(value)}>
                <title>${one.name}: ${tickText(value)}</title>
              </circle>`;
                })
          }
        </g>`,
    };
  };
  const legend = series.map(({ name, mark }) => ({ name, mark }));
  return html`<${Figure} ...${{ title, description, draw, table, legend, note, busy }} />`;
}

function scalesOf(series, x, y, width, height) {
  const points = series.flatMap((one) => one.points);
  const columns = extent(points.map((point) => point[0]));
  const [low, high] = extent(points.map((point) => point[1]));
  const room = [LEFT, width - RIGHT];
  const across = x.log ? logarithmic(columns, room, width < 420 ? 4 : 7) : linear(columns, room, width < 420 ? 4 : 6);
  const climb = [height - BOTTOM, TOP];
  const up = y.log
    ? logarithmic([low > 0 ? low : 1e-6, high > 0 ? high : 1], climb, 5)
    : linear([0, high || 1], climb, 5);
  return { across, up };
}

function pixelOf([column, value], scales) {
  const known = typeof value === "number" && Number.isFinite(value);
  return known ? [scales.across(column), scales.up(value)] : null;
}

/** The value of a line at x: that of a point there, or of the straight line between its neighbours. */
export function valueAt(points, x) {
  const known = points.filter((point) => typeof point[1] === "number" && Number.isFinite(point[1]));
  for (let place = 0; place < known.length; place += 1) {
    const [right, above] = known[place];
    if (right === x) return above;
    if (right > x) {
      if (place === 0) return null;
      const [left, below] = known[place - 1];
      return below + ((above - below) * (x - left)) / (right - left);
    }
  }
  return null;
}
