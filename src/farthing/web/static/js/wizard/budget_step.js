// Step 4: which account pays, and how much may be told about a person in all, with epsilon explained as odds.
import { html, useEffect } from "../../vendor/preact.js";
import { BudgetBar, barOf } from "../components/budget_bar.js";
import { ErrorBox } from "../components/error.js";
import { NumberField, SelectField, SliderField, TextField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { percentAtMost, privacy } from "../format.js";
import { useLoaded } from "../server_data.js";
import { useCheck } from "./declaration_check.js";
import { bodyOf, declarable } from "./declaration_draft.js";

const PRIORS = [
  [0.01, "1 in 100"],
  [0.1, "1 in 10"],
  [0.5, "1 in 2"],
];

/** The most that a belief can become once everything within the budget is published: Bayes' rule with odds times e^epsilon. */
export function sureAfter(prior, epsilon) {
  return prior / (prior + (1 - prior) * Math.exp(-epsilon));
}

export function BudgetStep({ draft, change, problemAt }) {
  const set = (part) => change((old) => ({ ...old, ...part }));
  const { data, error, reload } = useLoaded("/datasets");
  const { data: checked } = useCheck(bodyOf(draft), 350);
  // Of an account that renews each period has a name of its own, behind a comma; what is chosen is the whole.
  const accounts = new Map(
    (data?.datasets ?? []).map(({ account, budget }) => [account.replace(/, [^,]*$/, ""), budget]),
  );
  if (draft.account && !accounts.has(draft.account)) accounts.set(draft.account, null);
  useEffect(() => {
    // A file has one account: where it has one already, that pays, whatever was going to be opened.
    if (checked?.account_open && !draft.account && !draft.renews)
      set({ account: checked.account, proposed: checked.account });
  }, [checked]);
  const options = [
    ["", "A new account, with a budget of its own"],
    ...[...accounts.keys()].sort().map((name) => [name, name]),
  ];
  return html`
    <${ErrorBox} error=${error} onRetry=${reload} />
    <${SelectField} id="wizard-account" label="Which account protects these people?" value=${draft.account} onValue=${(account) => set({ account, proposed: "" })} options=${options} error=${problemAt("wizard-account")}
      hint="An account stands for people, not for a file. Choose an open one if the same people are in its files: otherwise they would have two budgets, and less protection than either promises." />
    <${Renewal} draft=${draft} set=${set} problemAt=${problemAt} />
    ${draft.account ? html`<${OpenAccount} budget=${accounts.get(draft.account)} name=${draft.account} />` : html`<${NewAccount} draft=${draft} set=${set} problemAt=${problemAt} />`}`;
}

const EVERY = [
  ["", "no: one budget for all time"],
  ...["day", "week", "month", "quarter", "year"].map((one) => [one, `yes, every ${one}`]),
];

/** A table that grows may have a budget for each period, of the rows of that period alone. */
function Renewal({ draft, set, problemAt }) {
  const dates = declarable(draft).filter((name) => draft.columns[name].kind === "dates");
  if (!dates.length) return null;
  return html`<details open=${draft.renews !== ""}>
    <summary>Does the table grow, with a budget for each period?</summary>
    <div class="stack inset">
      <${SelectField} id="wizard-renews" label="Does the budget renew?" value=${draft.renews} onValue=${(renews) => set({ renews, renewsDate: draft.renewsDate || dates[0] })} options=${EVERY}
        hint="Each period then has the budget below, for the rows of that period. Somebody who is in all of them is protected by what they come to together, which the last step says." />
      ${
        draft.renews &&
        html`<div class="pair">
        <${SelectField} id="wizard-renews-date" label="Which column dates a row?" value=${draft.renewsDate} onValue=${(renewsDate) => set({ renewsDate })} options=${dates.map((name) => [name, name])} error=${problemAt("wizard-renews-date")} />
        <${TextField} id="wizard-renews-period" label="This dataset is the rows of" hint="Such as 2026-03, 2026-W07 or 2026-Q2." value=${draft.renewsPeriod} onValue=${(renewsPeriod) => set({ renewsPeriod })} error=${problemAt("wizard-renews-period")} maxlength="10" autocomplete="off" />
      </div>`
      }
    </div>
  </details>`;
}

/** An account that is open keeps its budget. */
function OpenAccount({ budget, name }) {
  return html`<${Notice} title=${`The account ${name} pays`}>
    ${budget && html`<${BudgetBar} bar=${barOf(budget)} label=${`Budget of ${name}`} /><p>${budget.sentence}</p>`}
    <p>Its budget stays as it is, and is shared by all its files. You can raise it later, under About.</p>
  <//>`;
}

function NewAccount({ draft, set, problemAt }) {
  const usable = draft.epsilon > 0 && draft.epsilon <= 1000;
  const place = usable ? Math.min(10, Math.max(0.05, draft.epsilon)) : 1;
  return html`
    <${TextField} id="wizard-account-name" label="What should the account be called?" optional hint="By the people it protects, such as patients. Left empty, it is called like the dataset." value=${draft.accountName} onValue=${(accountName) => set({ accountName })} error=${problemAt("wizard-account-name")} maxlength="64" autocomplete="off" />
    <p>The budget is shared by everything that is ever published about these people, by everybody. You can raise it later, but what is spent never comes back.</p>
    <${SliderField} id="wizard-epsilon-slider" label="How much may be learned about a person in all?" min=${0.05} max=${10} log value=${place} valueText=${usable ? `ε ${privacy(draft.epsilon)}` : "—"} onValue=${(value) => set({ epsilon: Number(value.toPrecision(2)) })} />
    <div aria-live="polite"><p><strong>${usable ? odds(draft.epsilon) : "Choose an epsilon above 0."}</strong></p></div>
    ${
      usable &&
      html`<${Table} caption="How sure somebody can be after everything is published" columns=${[
        { key: "before", title: "Thought likely before", head: true, cell: ([, words]) => words },
        {
          key: "after",
          title: "At most after",
          right: true,
          cell: ([prior]) => percentAtMost(100 * sureAfter(prior, draft.epsilon)),
        },
      ]} rows=${PRIORS} />`
    }
    <div class="pair">
      <${NumberField} id="wizard-epsilon" label="Epsilon (ε)" hint="0.1 is strict, 1 is usual, 10 is weak." value=${draft.epsilon} onValue=${(epsilon) => set({ epsilon })} error=${problemAt("wizard-epsilon")} />
      <${NumberField} id="wizard-delta" label="Delta (δ)" hint="The chance that the promise above fails. Choose it far below one divided by the number of people; 0 allows no failure and needs more noise." value=${draft.delta} onValue=${(delta) => set({ delta })} error=${problemAt("wizard-delta")} />
    </div>`;
}

/** Epsilon in one sentence. */
export function odds(epsilon) {
  const sure = percentAtMost(100 * sureAfter(0.5, epsilon));
  return `Somebody who thought it 1 in 2 that a certain person is in the data can be at most ${sure} sure afterwards, whatever else they know.`;
}
