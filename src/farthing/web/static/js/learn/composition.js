// The composition explorer: the total by every theorem, as lines over k and as a table.

import { html } from "../../vendor/preact.js";
import { Lines } from "../charts/lines.js";
import { THEOREMS, theoremOf } from "../charts/theorems.js";
import { Card } from "../components/card.js";
import { Table } from "../components/table.js";
import { count, percent, privacy } from "../format.js";
import { gainOf, totalsAt } from "./sentences.js";

export function CompositionCard({ grid, of, busy, comparison }) {
  const totals = totalsAt(grid, of.k);
  const series = THEOREMS.map(({ key, name, mark }) => ({ name, mark, points: grid.map((row) => [row.k, row[key]]) }));
  return html`
    <${Card} title="What the total comes to">
      <${Lines}
        title=${`Total epsilon of up to ${count(of.k)} answers at ${privacy(of.epsilon)} each`}
        description=${described(totals, of)}
        series=${series} x=${{ label: "number of answers, k", log: of.k > 50 }} y=${{ label: "total epsilon" }} at=${of.k} busy=${busy}
        note=${grid.some((row) => THEOREMS.some(({ key }) => row[key] !== null)) ? null : "No theorem gives a total here: one answer alone may fail more often than is allowed in all."}
        table=${tableOf(grid, of)} />
      <dl class="learn-ideas">
        ${THEOREMS.map(
          (one) => html`
          <div key=${one.key} class="learn-idea ${one.mark}">
            <dt>${one.name} <span class="number strong">${privacy(totals[one.key])}</span></dt>
            <dd>${one.says} <span class="badge ${badgeOf(one.key, totals)}">${gainOf(one.key, totals)}</span></dd>
          </div>`,
        )}
      </dl>
      <h3>When the optimum holds</h3>
      <ul class="small">
        <li><strong>Some risk must be allowed.</strong> All losses may point the same way. With a risk of 0 only the sum is certain.</li>
        <li><strong>Prices must be fixed</strong> before the first answer. Each question may then be chosen after seeing the last answer. If prices are chosen as well, a filter keeps the account: play it below.</li>
        <li><strong>A filter refuses by prices alone.</strong> A refusal costs nothing and says nothing about anybody.</li>
      </ul>
      <${Everything} comparison=${comparison} />
    <//>`;
}

function badgeOf(key, totals) {
  return key !== "basic" && totals[key] < 0.995 * totals.basic ? "good" : "";
}

function described(totals, of) {
  const text = THEOREMS.map(({ key, name }) => `${name} ${privacy(totals[key])}`).join(", ");
  return `Lines of the total over the number of answers, one for each theorem. At ${count(of.k)} answers: ${text}.`;
}

function tableOf(grid, of) {
  return {
    caption: `Total epsilon at delta ${privacy(of.at_delta)}`,
    head: ["k", ...THEOREMS.map((one) => one.name)],
    rows: grid.map((row) => [count(row.k), ...THEOREMS.map(({ key }) => privacy(row[key]))]),
  };
}

/** All theorems that farthing knows, with their sources: slower, so it follows when the hand rests. */
function Everything({ comparison }) {
  const result = comparison.error ? null : comparison.value;
  if (comparison.error)
    return html`<p class="hint">The table of all theorems is missing: ${comparison.error.message}</p>`;
  if (!result) return null;
  const columns = [
    { key: "name", title: "Theorem", head: true, cell: (row) => theoremOf(row.name).name },
    { key: "epsilon", title: "Total epsilon", right: true, cell: (row) => privacy(row.epsilon) },
    { key: "waste_percent", title: "More than needed", right: true, cell: (row) => wasted(row) },
    { key: "source", title: "Source" },
    { key: "remark", title: "Remark", cell: (row) => row.remark || "" },
  ];
  return html`
    <details class="learn-everything">
      <summary>All theorems, with their sources</summary>
      <p role="status">${result.sentence}</p>
      <${Table} caption="Every theorem next to the optimum" columns=${columns} rows=${result.theorems} rowKey=${(row) => row.name} />
      ${(result.notes ?? []).map((note) => html`<p class="hint" key=${note}>${note}</p>`)}
      ${
        typeof result.optimal?.upper === "number"
          ? html`
        <p class="hint">The optimum is proven to lie between ${privacy(result.optimal.lower)} and ${privacy(result.optimal.upper)}.</p>`
          : null
      }
    </details>`;
}

function wasted(row) {
  if (typeof row.waste_percent !== "number") return "—";
  return row.waste_percent < 0.05 ? "nothing" : percent(row.waste_percent);
}
