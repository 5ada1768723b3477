// How the budget of one dataset came to be what it is.

import { html } from "../../vendor/preact.js";
import { query } from "../api.js";
import { BurnDown } from "../charts/burn_down.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { privacy } from "../format.js";
import { useLoaded } from "../server_data.js";

export function BurnDownCard({ dataset, own }) {
  const { data, error, loading, reload } = useLoaded(`/ledger/burn-down${query({ dataset })}`);
  return html`
    <${Card} title=${own ? "How your grant is used up" : "How the budget is used up"}>
      <${ErrorBox} error=${error} onRetry=${reload} />
      ${!data && !error ? html`<${Loading} lines=${5} />` : null}
      ${data && data.points.length === 0 ? html`<${Empty} level=${3} title="Nothing was spent yet">All of epsilon ${privacy(totalOf(data))} is left.<//>` : null}
      ${data && data.points.length > 0 ? html`<${Drawn} data=${data} busy=${loading} />` : null}
    <//>`;
}

function totalOf(data) {
  return typeof data.total === "number" ? data.total : data.total?.epsilon;
}

function Drawn({ data, busy }) {
  const total = totalOf(data);
  const { points } = data;
  const spent = points[points.length - 1].spent;
  return html`
    <${BurnDown}
      title=${claim(spent, total)} total=${total} points=${points} busy=${busy}
      description=${`Steps of the epsilon spent after each of ${points.length} entries: ${privacy(spent)} of ${privacy(total)} now.`}
      table=${{
        caption: "Epsilon spent after each entry",
        head: ["entry", "spent", "budget", "what happened"],
        rows: points.map((point) => [
          String(point.sequence),
          privacy(point.spent),
          privacy(point.total),
          point.sentence,
        ]),
      }} />`;
}

/** One sentence above the picture. */
function claim(spent, total) {
  if (!(total > 0)) return "There is no budget";
  const share = (100 * spent) / total;
  if (share >= 100.05) return `More is spent than the budget now allows: ${privacy(spent)}, of ${privacy(total)}`;
  const rounded = share >= 99.95 ? "All" : `${Number(share.toPrecision(2))}%`;
  return `${rounded} of the budget is spent: ${privacy(spent)} of ${privacy(total)}`;
}
