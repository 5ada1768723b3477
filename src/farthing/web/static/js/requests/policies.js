// What analysts may spend without asking, and for curators the form that grants it.
import { html, useState } from "../../vendor/preact.js";
import { put } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { NumberField, SelectField, TextField } from "../components/field.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { useAction, useLoaded } from "../server_data.js";

const PERIODS = ["week", "month", "quarter", "year"].map((one) => [one, `per ${one}`]);
const EMPTY = {
  dataset: "",
  analyst: "",
  epsilon: null,
  delta: null,
  per: "quarter",
  statistics: "",
  columns: "",
  cell: null,
};
const listed = (text) =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

export function Policies({ me }) {
  const { data, error, reload } = useLoaded("/policies");
  const policies = data?.policies ?? [];
  const [end, ending, refusal] = useAction(async (policy) => {
    await put(address(policy), { epsilon: 0 });
    toast("The policy has ended.");
    reload();
  });
  if (me.role !== "curator" && !policies.length) return html`<${ErrorBox} error=${error} onRetry=${reload} />`;
  const columns = [
    { key: "analyst", title: "Who", head: true },
    { key: "dataset", title: "Account" },
    { key: "sentence", title: "May spend without asking" },
  ];
  if (me.role === "curator") {
    columns.push({
      key: "end",
      title: html`<span class="unseen">Change</span>`,
      cell: (one) =>
        html`<${Button} small disabled=${ending} onClick=${() => end(one)}>End<span class="unseen"> the policy of ${one.analyst}</span><//>`,
    });
  }
  return html`<${Card} title="Policies">
    <div class="stack">
      <${ErrorBox} error=${error ?? refusal} onRetry=${reload} />
      ${policies.length ? html`<${Table} caption="Policies" hideCaption stacks rows=${policies} rowKey=${(one) => `${one.dataset} ${one.analyst}`} columns=${columns} />` : html`<p class="muted">There are none: everything beyond a grant is asked for.</p>`}
      ${me.role === "curator" ? html`<${NewPolicy} onDone=${reload} />` : null}
    </div>
  <//>`;
}

const address = (one) => `/datasets/${encodeURIComponent(one.dataset)}/policies/${encodeURIComponent(one.analyst)}`;

function NewPolicy({ onDone }) {
  const [form, setForm] = useState(EMPTY);
  const datasets = useLoaded("/datasets").data?.datasets ?? [];
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const dataset = form.dataset || datasets[0]?.name || "";
  const [grant, busy, error] = useAction(async () => {
    const { statistics, columns, cell, epsilon, delta, per, analyst } = form;
    const body = { epsilon, delta: delta ?? 0, per, cell: cell ?? 0 };
    if (listed(statistics).length) body.statistics = listed(statistics);
    if (listed(columns).length) body.columns = listed(columns);
    await put(address({ dataset, analyst: analyst.trim() }), body);
    toast("The policy is granted.");
    setForm(EMPTY);
    onDone();
  });
  const ready = dataset && form.analyst.trim() && form.epsilon > 0;
  const submit = (event) => {
    event.preventDefault();
    if (ready) grant();
  };
  return html`<details class="more"><summary>Grant a policy</summary>
    <form class="stack narrow" onSubmit=${submit}>
      <${ErrorBox} error=${error} />
      <${SelectField} label="Dataset" value=${dataset} onValue=${set("dataset")} options=${datasets.map((one) => [one.name, one.name])} />
      <${TextField} label="Analyst" value=${form.analyst} onValue=${set("analyst")} />
      <${NumberField} label="Epsilon" value=${form.epsilon} onValue=${set("epsilon")} unit="ε" />
      <${NumberField} label="Delta" optional value=${form.delta} onValue=${set("delta")} unit="δ" hint="Plans of a budget with a delta need some of it." />
      <${SelectField} label="How often" value=${form.per} onValue=${set("per")} options=${PERIODS} />
      <${TextField} label="Only these statistics" optional hint="Kinds, such as count, histogram." value=${form.statistics} onValue=${set("statistics")} />
      <${TextField} label="Only these columns" optional hint="Groups and conditions included." value=${form.columns} onValue=${set("columns")} />
      <${NumberField} label="Withhold cells of fewer people than" optional value=${form.cell} onValue=${set("cell")} hint="The released count decides, at the low end of its 95% interval. A plan must count every cell that it shows." />
      <div><${Button} type="submit" kind="primary" disabled=${!ready} busy=${busy}>Grant<//></div>
    </form>
  </details>`;
}
