// The privacy-region explorer: what the same answers leave to somebody who guesses.

import { html } from "../../vendor/preact.js";
import { lowerPart, Region } from "../charts/region.js";
import { THEOREMS, theoremOf } from "../charts/theorems.js";
import { Card } from "../components/card.js";
import { amount, count, privacy } from "../format.js";
import { oddsSentence, reachOf } from "./sentences.js";

export function RegionCard({ regions, of, busy }) {
  const ordered = THEOREMS.map(({ key }) => regions.find((one) => theoremOf(one.theorem).key === key)).filter(Boolean);
  return html`
    <${Card} title="What somebody could find out">
      <p>
        Somebody sees the ${count(of.k)} ${of.k === 1 ? "answer" : "answers"} and guesses: was this person's row in the table, or not? There are two ways to be wrong.
      </p>
      <dl class="facts learn-errors">
        <dt>False alarm, P_FA</dt><dd>They say "in the table", and the person is not.</dd>
        <dt>Miss, P_MD</dt><dd>They say "not in the table", and the person is.</dd>
      </dl>
      <div class="learn-region">
        <${Region}
          title="No guess can get below the curve"
          description=${described(ordered, of)}
          regions=${ordered} busy=${busy} table=${tableOf(ordered)}
          note="The shaded region is what a guesser can reach. The nearer it comes to the corner, the less privacy is left." />
        <div>
          <p class="learn-odds" role="status">${oddsSentence(ordered)}</p>
          <h3>How to read it</h3>
          <ul>
            <li><strong>The diagonal</strong> is guessing without looking: fewer false alarms, more misses.</li>
            <li><strong>The corner</strong> is somebody who is never wrong. Privacy keeps the region away from it.</li>
            <li><strong>Each curve</strong> is what one theorem proves. A higher curve rules out more attacks; none can be higher than the optimal one and still be true.</li>
            <li><strong>The dot</strong> is the best guess when both cases are equally likely.</li>
            <li><strong>It does not matter</strong> what is done with the answers, or who has which of them: rounded, combined or shared, they allow no guess below the curve of all of them.</li>
          </ul>
          <h3>A best guess is right</h3>
          <ul class="learn-reach">
            ${ordered.map((one) => html`<li key=${one.theorem}>${theoremOf(one.theorem).name}: <span class="number">${reachOf(one)}</span></li>`)}
          </ul>
        </div>
      </div>
    <//>`;
}

function described(regions, of) {
  const text = regions.map((one) => `${theoremOf(one.theorem).name}: a best guess is right ${reachOf(one)}`).join("; ");
  return `Curves of misses against false alarms for ${count(of.k)} answers at epsilon ${privacy(of.epsilon)} and delta ${privacy(of.delta)}. ${text}.`;
}

/** The curves at every tenth of the false alarms. */
function tableOf(regions) {
  const lower = regions.map((one) => lowerPart(one.points));
  const tenths = Array.from({ length: 11 }, (_, at) => at / 10);
  return {
    caption: "Misses that cannot be avoided, by false alarms",
    head: ["P_FA", ...regions.map((one) => theoremOf(one.theorem).name)],
    rows: tenths.map((alarm) => [String(alarm), ...lower.map((points) => amount(heightAt(points, alarm)))]),
  };
}

function heightAt(points, alarm) {
  const there = points.filter((point) => Math.abs(point[0] - alarm) < 1e-9).map((point) => point[1]);
  if (there.length) return Math.min(...there);
  const right = points.findIndex((point) => point[0] > alarm);
  const [[from, above], [to, below]] = [points[right - 1], points[right]];
  return above + ((below - above) * (alarm - from)) / (to - from);
}
