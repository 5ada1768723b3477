// What the plan may tell about one person, as odds.

import { html } from "../../vendor/preact.js";
import { Table } from "../components/table.js";
import { percent } from "../format.js";
import { memo } from "./memo.js";
import { More } from "./more.js";

function PlainRisk({ risk }) {
  return html`
    <p>${risk.odds_sentence}</p>
    <${More} summary="For other beginnings">${() => html`
      <${Table} caption="Most that anybody can be sure of afterwards" columns=${[
        { key: "prior", title: "Sure before", head: true, cell: (row) => percent(100 * row.prior) },
        {
          key: "posterior",
          title: "At most sure after",
          right: true,
          cell: (row) => percent(100 * row.posterior_upper),
        },
      ]} rows=${risk.table ?? []} />`}<//>`;
}

export const Risk = memo(PlainRisk);
