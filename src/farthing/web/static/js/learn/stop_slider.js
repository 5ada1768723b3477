// A slider over round numbers: steps that people would choose, however far apart they are.

import { html } from "../../vendor/preact.js";
import { useIdentity } from "../charts/figure.js";

export const COUNTS = [
  1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 500, 700, 1000,
];
export const EPSILONS = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3];
export const LEAKS = [0, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1];
export const DELTAS = [1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.2];

/** The place of the stop that is nearest to a value. */
export function nearest(stops, value) {
  let best = 0;
  stops.forEach((stop, at) => {
    if (Math.abs(stop - value) < Math.abs(stops[best] - value)) best = at;
  });
  return best;
}

/** One slider: a name, the value in words, both ends named. */
export function Stops({ name, label, hint, stops, value, change, text, ends }) {
  const id = useIdentity("stop");
  return html`
    <div class="slider">
      <div class="slider-head">
        <label for=${id}>${label}</label>
        <output class="strong" for=${id}>${text(value)}</output>
      </div>
      <input
        id=${id} type="range" name=${name} min="0" max=${stops.length - 1} step="1" value=${nearest(stops, value)}
        aria-valuetext=${text(value)} aria-describedby="${id}-ends ${id}-hint"
        onInput=${(event) => change(stops[Number(event.currentTarget.value)])} />
      <div class="slider-ends" id="${id}-ends"><span>${ends[0]}</span><span>${ends[1]}</span></div>
      <p class="hint" id="${id}-hint">${hint}</p>
    </div>`;
}
