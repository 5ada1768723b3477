// Step 4: how much may be told about a person in all, with epsilon explained as odds.
import { html } from "../../vendor/preact.js";
import { NumberField, SliderField } from "../components/field.js";
import { Table } from "../components/table.js";
import { percentAtMost, privacy } from "../format.js";

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
  const usable = draft.epsilon > 0 && draft.epsilon <= 1000;
  const place = usable ? Math.min(10, Math.max(0.05, draft.epsilon)) : 1;
  return html`
    <p>The budget is shared by everything that is ever published about this dataset, by everybody. You can raise it later, but what is spent never comes back.</p>
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
