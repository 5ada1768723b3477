// One dataset: what is promised, what its columns hold, its budget and how a curator divides it.
import { html } from "../../vendor/preact.js";
import { BudgetBar, barOf, isAsking } from "../components/budget_bar.js";
import { LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Table } from "../components/table.js";
import { CorrectionForm } from "../dataset/correction.js";
import { NextPeriod } from "../dataset/next_period.js";
import { Parts } from "../dataset/parts.js";
import { BudgetForm, Grants, Reserves } from "../dataset/shares.js";
import { UnknownFacts } from "../dataset/unknown_facts.js";
import { amount, listText, privacy } from "../format.js";
import { may } from "../login_session.js";
import { Lifetime } from "../planner/budget.js";
import { More } from "../planner/disclosure.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

export default function Dataset({ params, me }) {
  const name = params.dataset ?? "";
  const path = "/datasets/" + encodeURIComponent(name);
  const { data, error, reload } = useLoaded(path);
  const spent = data?.budget?.exhausted && !isAsking(data.budget);
  const actions =
    data &&
    html`
    ${me.role !== "auditor" && !spent && html`<${LinkButton} kind="primary" href=${link("plan", name)}>Plan a release<//>`}
    ${may(me, "spend") && !data.part && !spent && html`<${LinkButton} href=${link("ask", name)}>Ask<//>`}`;
  return html`<${Page} title=${`About ${name}`} lead="What is promised about this dataset, what its columns hold, and what may still be spent." actions=${actions}>
    <${ErrorBox} error=${error} onRetry=${reload} />
    ${error?.status === 404 && html`<p><a href="#/">Back to the datasets</a></p>`}
    ${!data && !error && html`<${Loading} label="Loading the dataset" lines=${8} />`}
    ${
      data &&
      html`
      <${Budget} data=${data} me=${me} path=${path} reload=${reload} />
      <${PromiseCard} data=${data} />
      <${UnknownFacts} data=${data} me=${me} onFound=${reload} />
      ${data.schema.length > 0 && html`<${Columns} columns=${data.schema} found=${foundNames(data)} />`}
      <${Parts} data=${data} me=${me} reload=${reload} />
      ${data.grants && !data.part && html`<${Grants} data=${data} me=${me} path=${path} reload=${reload} />`}
      ${me.role === "curator" && html`<${Reserves} data=${data} path=${path} reload=${reload} />`}
      ${me.role === "curator" && html`<${CorrectionForm} data=${data} path=${path} reload=${reload} />`}`
    }
  <//>`;
}

function Budget({ data, me, path, reload }) {
  const { budget } = data;
  if (!budget) {
    return html`<${Card} title="Budget"><p>You have no budget here yet. Ask a curator to grant one to <strong>${me.name}</strong>.</p><//>`;
  }
  return html`<${Card} title=${budget.analyst ? "Your budget" : "Budget"}>
    <div class="stack">
      <${BudgetBar} bar=${barOf(budget)} label=${budget.analyst ? "Your budget" : "Budget"} />
      <p>${budget.sentence}</p>
      <${Lifetime} budget=${budget} />
      <${Fitting} path=${path} charges=${budget.charges} />
      ${
        budget.exhausted &&
        !isAsking(budget) &&
        html`<${Notice} tone="warn" title="Nothing is left to spend">
        <p>What was released stays readable in the <a href=${link("ledger", data.name)}>ledger</a>. ${me.role === "curator" ? "More can be released once you raise the budget below; everything released before still counts." : "A curator can grant more."}</p>
      <//>`
      }
      ${me.role === "curator" && data.renews && html`<${NextPeriod} data=${data} path=${path} />`}
      ${me.role === "curator" && !data.renews && !data.part && html`<${BudgetForm} budget=${budget} path=${path} reload=${reload} />`}
    </div>
  <//>`;
}

/** What would still fit, and what may be claimed now: worked out from all charges, so only when somebody looks. */
function Fitting({ path, charges }) {
  return (
    charges > 0 &&
    html`<${More} summary="What would still fit, and what may be claimed now">${() => html`<${Details} path=${path} />`}<//>`
  );
}

function Details({ path }) {
  const { data, error, reload } = useLoaded(`${path}/budget?odometer=true`);
  if (error) return html`<${ErrorBox} error=${error} onRetry=${reload} />`;
  if (!data) return html`<${Loading} label="Reading all charges" lines=${2} />`;
  return html`<div class="stack small" id="budget-details">
    <p>${data.would_fit_sentence || `One charge of epsilon ${privacy(data.remaining.epsilon)}, or smaller ones that add up to it.`}</p>
    <p>${data.odometer_sentence}</p>
  </div>`;
}

function PromiseCard({ data }) {
  return html`<${Card} title="What is promised">
    <p>${data.unit_sentence}</p>
    ${data.tables && html`<${Tables} tables=${data.tables} />`}
    ${data.source && !data.tables && html`<p class="muted small">File: <code>${data.source}</code>${typeof data.rows === "number" && html`, ${amount(data.rows)} rows, which is public`}</p>`}
    ${data.account !== data.name && html`<p class="muted small">Account: <strong>${data.account}</strong>, which pays for every release from this dataset</p>`}
    ${data.stability && html`<details class="more"><summary>How far one person can change the table</summary><pre tabindex="0"><code>${data.stability}</code></pre></details>`}
  <//>`;
}

/** Linked tables: which of them is asked about, and where each leads. */
function Tables({ tables }) {
  const rows = (one) =>
    one.max_rows === null
      ? "as each statistic says"
      : `${one.max_rows} ${one.max_rows === 1 ? "row" : "rows"} of a person`;
  return html`<${Table} caption="The tables of these people" rows=${tables} rowKey=${(one) => one.name} columns=${[
    {
      key: "name",
      title: "Table",
      head: true,
      cell: (one) => html`<code>${one.name}</code>${one.is_asked_about && " (asked about here)"}`,
    },
    ...(tables[0].source ? [{ key: "source", title: "File", cell: (one) => html`<code>${one.source}</code>` }] : []),
    {
      key: "key",
      title: "Leads to",
      cell: (one) => (one.key ? html`<code>${one.key} → ${one.leads_to}</code>` : "names the people"),
    },
    { key: "rows", title: "At most", cell: rows },
  ]} />`;
}

const HOLDS = {
  integers: "whole numbers",
  reals: "numbers",
  categories: "one of a list",
  flags: "yes or no",
  dates: "dates",
};

/** The columns whose range or values were found in the rows, and paid for. */
const foundNames = ({ unknown }) => unknown.filter((one) => one.finding).map((one) => one.name);

function Columns({ columns, found }) {
  const isFound = (one) => found.includes(one.name);
  const caption = columns.some(isFound)
    ? "What the columns can hold: from common knowledge, or found in the rows for a part of the budget"
    : "What the columns can hold, from common knowledge and not from the rows";
  return html`<${Card} title="Columns">
    <${Table} caption=${caption} rows=${columns} rowKey=${(one) => one.name} columns=${[
      { key: "name", title: "Column", head: true, cell: (one) => html`<code>${one.name}</code>` },
      { key: "kind", title: "Holds", cell: (one) => HOLDS[one.kind] ?? one.kind },
      { key: "range", title: "Possible values", cell: (one) => `${range(one)}${isFound(one) ? " (found)" : ""}` },
    ]} />
  <//>`;
}

function range({ kind, lower, upper, categories }) {
  if (kind === "flags") return "yes, no";
  if (categories?.length)
    return categories.length > 12
      ? `${listText(categories.slice(0, 10).map(String))} and ${categories.length - 10} more`
      : categories.map(String).join(", ");
  const text = (value) => (typeof value === "number" ? amount(value) : String(value));
  return `${text(lower)} to ${text(upper)}`;
}
