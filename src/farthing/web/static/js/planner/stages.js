// A plan that needs something unknown: what it costs to find that, and how large the errors may be afterwards.
import { html } from "../../vendor/preact.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { ROWS, Search } from "../dataset/unknown_facts.js";
import { epsilon, plusMinus } from "../format.js";

/** What the first stage of the plan that was refused would find. */
export const foundByStages = (refusal) => {
  const { stages, columns = [] } = refusal?.error.fields ?? {};
  return stages ? columns : [];
};

/** Both stages of the plan that was refused; nothing where the refusal has no preview. */
export function Stages({ refusal, about, me, onFound }) {
  const { stages, columns = [] } = refusal?.error.fields ?? {};
  if (!stages) return null;
  const added = refusal.cause.kind === "add"; // and refused: the plan is as it was before
  const asked = {
    columns: columns.filter((name) => name !== ROWS),
    rows_per_unit: columns.includes(ROWS),
    epsilon: stages.epsilon,
  };
  const rows = (stages.cases[0]?.errors ?? []).map((one, at) => ({
    name: one.name,
    errors: stages.cases.map((found) => found.errors[at].error),
  }));
  return html`
    <${Notice} title=${`${added ? "With this statistic, the plan" : "This plan"} has two stages; nothing is spent yet`} id="stages">
      <p>The first stage finds what nobody knows. It costs ${epsilon(stages.epsilon)}:</p>
      <${Search} key=${JSON.stringify(asked)} data=${about} me=${me} asked=${asked} onFound=${onFound} />
      <p>The second stage then has ${epsilon(stages.rest)} for the statistics. How accurate they are depends on what is found; after the first stage you see it exactly, before the rest is spent.</p>
      <${Table} caption="Error (95 times in 100), if this is found" rows=${rows} rowKey=${(row) => row.name}
        columns=${[
          { key: "name", title: "Statistic", head: true },
          ...stages.cases.map((found, at) => ({
            key: found.found,
            title: found.found,
            right: true,
            cell: (row) => plusMinus(row.errors[at]),
          })),
        ]} />
    <//>`;
}
