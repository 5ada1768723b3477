// What the plan may tell about one person, as odds.

import { html } from "../../vendor/preact.js";
import { Table } from "../components/table.js";
import { percent } from "../format.js";
import { More } from "./disclosure.js";
import { memo } from "./memo.js";

function PlainRisk({ risk }) {
  return html`
    <p>${risk.odds_sentence}</p>
    <${More} summary="Other starting points">${() => html`
      <${Table} caption="How sure anybody can be afterwards, at most" columns=${[
        { key: "prior", title: "Sure before", head: true, cell: (row) => percent(100 * row.prior) },
        {
          key: "posterior",
          title: "Sure after, at most",
          right: true,
          cell: (row) => percent(100 * row.posterior_upper),
        },
      ]} rows=${risk.table ?? []} />`}<//>`;
}

export const Risk = memo(PlainRisk);
