// What the plan may tell about one person, as odds.

import { html } from "../../vendor/preact.js";
import { Table } from "../components/table.js";
import { percent } from "../format.js";

export function Risk({ risk }) {
  return html`
    <p>${risk.odds_sentence}</p>
    <details class="more">
      <summary>For other beginnings</summary>
      <${Table} caption="Most that anybody can be sure of afterwards" columns=${[
        { key: "prior", title: "Sure before", head: true, cell: (row) => percent(100 * row.prior) },
        { key: "posterior", title: "At most sure after", right: true, cell: (row) => percent(100 * row.posterior_upper) },
      ]} rows=${risk.table ?? []} />
    </details>`;
}
