// The budget above the plan: the bar with its parts in words, and what to do when nothing is left.

import { html } from "../../vendor/preact.js";
import { BudgetBar, barOf, reachable, worthAWord } from "../components/budget_bar.js";
import { Button } from "../components/button.js";
import { Notice } from "../components/notice.js";
import { link } from "../router.js";
import { memo } from "./memo.js";

const PARTS = ["spent", "plan", "withheld", "free"]; // told even when there is nothing of them

/** The bar of a plan, with what the draft keeps for later taken out of what is free. */
export function barWith(bar, reserve) {
  const reserved = Math.min(Math.max(0, reserve ?? 0), bar.free);
  return { ...bar, withheld: bar.withheld + reserved, free: worthAWord(bar.free - reserved, bar.total) };
}

export const Budget = memo(({ dataset, budget, bar, reserve, stale, sentence = true }) => {
  const parts = barWith(bar ? reachable(bar, budget) : barOf(budget), reserve);
  return html`
    <div class="plan-budget ${stale ? "stale" : ""}">
      <${BudgetBar} bar=${parts} always=${PARTS} label=${`Budget of ${dataset}`} id="plan-bar" />
      ${sentence ? html`<p class="small plan-budget-words" title=${budget.sentence}>${budget.sentence}</p>` : null}
      <${Lifetime} budget=${budget} />
    </div>`;
});

/** Of an account with a budget for each period: what somebody who is in all of them is protected by. */
export function Lifetime({ budget }) {
  const words = budget.lifetime;
  return words ? html`<p class="small">Each period has its own budget: ${words}.</p>` : null;
}

/** Nothing is left to plan with: why, and the ways on. */
export function Exhausted({ dataset, budget, me, onAsk = null }) {
  const withheld = Object.keys(budget.withheld ?? {});
  return html`
    <${Notice} tone="warn" live title="The budget is spent">
      <p>${budget.sentence}</p>
      <p>What you can still do:</p>
      <ul>
        <li>Read and download what was released: it costs nothing, as often as you like. It is listed below.</li>
        <li>Ask again in a <a href=${link("ask", dataset)}>session that is open</a>: what its answers already cover is free.</li>
        ${withheld.length ? html`<li>Use what is set aside for ${withheld.join(", ")}, if the curator agrees.</li>` : null}
        ${
          me.role === "curator"
            ? html`<li><a href=${link("dataset", dataset)}>Raise the budget</a>. It weakens the promise to the people in the table, so have a good reason.</li>`
            : html`<li>Plan what you need and ask a curator to allow it, or ask for a larger grant.${onAsk ? html` <${Button} small onClick=${onAsk}>Plan a request<//>` : null}</li>`
        }
      </ul>
    <//>`;
}
