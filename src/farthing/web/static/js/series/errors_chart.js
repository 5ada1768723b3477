// How far off every period of a running series will be, beside the same totals as separate releases.
import { html } from "../../vendor/preact.js";
import { Lines } from "../charts/lines.js";
import { amount, plural } from "../format.js";

/** `done` periods were released: a line stands there. */
export function ErrorsChart({ plan, done = 0 }) {
  const { errors, confidence } = plan;
  const points = (of) => errors.map((one, place) => [place + 1, one[of]]);
  const last = errors.at(-1);
  const often = `${Number((100 * confidence).toPrecision(4))} times in 100`;
  return html`<${Lines}
    title=${`The error of ${plural(errors.length, plan.every)}, from ${errors[0].period} to ${last.period}`}
    description=${`Lines of the error over the periods. The total of ${last.period} is within ${amount(last.total)} ${often}; as separate releases at this price, within ${amount(last.separate)}.`}
    series=${[
      { name: "total so far", mark: "theorem-optimal", points: points("total") },
      { name: "count of the period alone", mark: "theorem-kov", points: points("count") },
      { name: "total, as separate releases", mark: "theorem-basic", points: points("separate") },
    ]}
    x=${{ label: `${plan.every} after ${plan.every}` }} y=${{ label: "error, ±" }} at=${done || null}
    table=${{
      caption: `How far off each number may be, ${often}`,
      head: ["period", "count", "total so far", "total, as separate releases"],
      rows: errors.map((one) => [one.period, amount(one.count), amount(one.total), amount(one.separate)]),
    }} />`;
}
