// Home: the datasets, what is left of their budgets, and what to do next.
import { html } from "../../vendor/preact.js";
import { BudgetBar, barOf, isAsking } from "../components/budget_bar.js";
import { LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Page } from "../components/page.js";
import { moment, plural } from "../format.js";
import { may } from "../login_session.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

const LEADS = {
  curator: "Choose a dataset to plan what is published about it, or declare a new one.",
  analyst: "Choose a dataset to plan a release or ask questions; the bar shows what you may still spend.",
  auditor: "Every dataset and its budget. You can read all of it and spend nothing.",
};

export default function Home({ me }) {
  const { data, error, reload } = useLoaded("/datasets");
  const declare = me.role === "curator" && html`<${LinkButton} kind="primary" href="#/wizard">Declare a dataset<//>`;
  return html`<${Page} title="Datasets" lead=${LEADS[me.role]} actions=${data?.datasets.length ? declare : null}>
    <${ErrorBox} error=${error} onRetry=${reload} />
    ${!data && !error && html`<${Loading} label="Loading the datasets" lines=${6} />`}
    ${data && (data.datasets.length ? html`<${Datasets} datasets=${data.datasets} me=${me} />` : html`<${Nothing} me=${me} />`)}
    ${data && data.datasets.length > 0 && me.role !== "auditor" && html`<${Drafts} />`}
  <//>`;
}

function Datasets({ datasets, me }) {
  return html`<div class="grid">${datasets.map((one) => html`<${DatasetCard} key=${one.name} dataset=${one} me=${me} />`)}</div>`;
}

function DatasetCard({ dataset, me }) {
  const { name, unit, budget, part } = dataset;
  const head = html`<a href=${link("dataset", name)}>${name}</a>`;
  const spent = budget?.exhausted && !isAsking(budget);
  return html`<${Card} title=${head} class="dataset-card" actions=${spent && html`<span class="badge warn">budget spent</span>`}>
    ${unit && html`<p class="muted small">${unit === "one row" ? "Protects every row by itself." : `Protects ${unit} together.`}${part && ` A part: ${part}.`}</p>`}
    ${
      budget
        ? html`${!isAsking(budget) && html`<${BudgetBar} bar=${barOf(budget)} label=${budget.analyst ? "Your budget" : "Budget"} />`}<p class="small">${budget.sentence}</p>`
        : html`<p class="small">You have no budget here yet. Ask a curator for one.</p>`
    }
    ${
      spent &&
      html`<p class="small"><strong>What now?</strong> What was released stays readable in the ledger.
      ${me.role === "curator" ? " More can be spent once you raise the budget under About." : " A curator can grant more."}</p>`
    }
    <div class="row">
      ${me.role !== "auditor" && !spent && html`<${LinkButton} kind="primary" href=${link("plan", name)}>Plan<//>`}
      ${may(me, "spend") && !part && !spent && html`<${LinkButton} href=${link("ask", name)}>Ask<//>`}
      <${LinkButton} href=${link("dataset", name)}>About<//>
      ${(spent || me.role === "auditor") && html`<${LinkButton} href=${link("ledger", name)}>Ledger<//>`}
    </div>
  <//>`;
}

function Nothing({ me }) {
  if (me.role === "curator") {
    return html`<${Empty} title="No dataset has been declared yet" action=${html`<${LinkButton} kind="primary" href="#/wizard">Declare the first dataset<//> <${LinkButton} href="#/learn">See how it works<//>`}>
      A few short questions: which file, whom it protects, what its columns may hold, and how much may be revealed about a person. No row is read for this.
    <//>`;
  }
  if (me.role === "analyst") {
    return html`<${Empty} title="No dataset is open to you yet" action=${html`<${LinkButton} href="#/learn">See how budgets work<//>`}>
      Ask a curator of this server (the person who gave you this account) to grant a budget to <strong>${me.name}</strong>. It then appears here.
    <//>`;
  }
  return html`<${Empty} title="No dataset has been declared yet">As soon as a curator declares one, its budget and its ledger can be read here.<//>`;
}

/** What was begun: the newest drafts, so that one can go on where one stopped. */
function Drafts() {
  const { data } = useLoaded("/plans");
  const plans = [...(data?.plans ?? [])].sort((a, b) => (b.changed ?? 0) - (a.changed ?? 0)).slice(0, 5);
  if (!plans.length) return null;
  return html`<${Card} title="Continue a draft">
    <ul class="drafts">${plans.map(
      (one) => html`<li key=${one.id}>
      <a href=${link("plan", one.dataset, one.id)}>${one.title || `Plan for ${one.dataset}`}</a> <span class="muted small">${one.title && `${one.dataset}, `}${plural(one.statistics ?? 0, "statistic")}</span>
      ${one.changed && html` <span class="muted small">changed ${moment(one.changed)}</span>`}
    </li>`,
    )}</ul>
  <//>`;
}
