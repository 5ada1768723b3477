// What other strategies reach under the same budget: many games, and what no strategy can beat.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { ErrorBox } from "../components/error.js";
import { Table } from "../components/table.js";
import { count, percent, percentAtMost } from "../format.js";

export function Rivals({ body }) {
  const [found, setFound] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const play = async () => {
    setBusy(true);
    try {
      setFound(await post("/rivals", body));
      setError(null);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return html`
    <h3>Rivals</h3>
    <p>If somebody plays many games with one strategy, how often is the guess right?</p>
    <p><${Button} busy=${busy} onClick=${play}>Let rivals play<//></p>
    <${ErrorBox} error=${error} />
    <div aria-live="polite">${found ? html`<${Standings} found=${found} />` : null}</div>`;
}

function Standings({ found }) {
  const columns = [
    { key: "name", title: "Strategy", head: true },
    { key: "right", title: "Right", right: true, cell: ({ right }) => percent(100 * right) },
    {
      key: "delta_reached",
      title: "Beyond epsilon",
      right: true,
      cell: (one) => `${percent(100 * one.delta_reached)} ± ${percent(200 * one.standard_error)}`,
    },
  ];
  return html`
    <${Table} caption=${`${count(found.games)} games of each strategy`} columns=${columns} rows=${found.rivals} rowKey=${(row) => row.name} />
    <p class="hint">
      No strategy is right more than ${percentAtMost(100 * found.right_at_most)} of the time. "Beyond epsilon" says by how
      much the answers gave away more than epsilon, on average; delta, ${percent(100 * found.delta)}, is the most that can be. Luck
      in so few games may put both a little higher.
    </p>`;
}
