// The budget above the plan: the bar, the same in a sentence, and what to do when nothing is left.

import { html } from "../../vendor/preact.js";
import { BudgetBar, barOf } from "../components/bar.js";
import { Notice } from "../components/notice.js";
import { privacy } from "../format.js";
import { link } from "../router.js";
import { memo } from "./memo.js";

const CRUMB = 1e-5; // of a budget: what a plan of all of it leaves for rounding is not worth a number

/** The bar of a plan, with what the draft keeps for later taken out of what is free. */
export function barWith(bar, reserve) {
  const kept = Math.min(Math.max(0, reserve ?? 0), bar.free);
  const free = bar.free - kept;
  return { ...bar, withheld: bar.withheld + kept, free: free > CRUMB * bar.total ? free : 0 };
}

/** The bar in words. */
export function barSentence(bar) {
  const parts = [
    `${privacy(bar.spent + (bar.waiting ?? 0))} spent`,
    `${privacy(bar.plan)} this plan`,
    `${privacy(bar.withheld)} reserved`,
    `${privacy(bar.free)} free`,
  ];
  return `Of a budget of ε ${privacy(bar.total)}: ${parts.join(", ")}.`;
}

export const Budget = memo(({ dataset, budget, bar, reserve, stale }) => {
  const shown = barWith(bar ?? barOf(budget), reserve);
  return html`
    <div class="plan-budget ${stale ? "stale" : ""}">
      <${BudgetBar} bar=${shown} label=${`Budget of ${dataset}`} id="plan-bar" />
      <p class="small" id="plan-bar-words">${barSentence(shown)} ${budget.sentence}</p>
    </div>`;
});

/** Nothing is left to plan with: why, and the ways on. */
export function Exhausted({ dataset, budget, me }) {
  const withheld = Object.keys(budget.withheld ?? {});
  return html`
    <${Notice} tone="warn" live title="The budget is spent">
      <p>${budget.sentence}</p>
      <p>What you can still do:</p>
      <ul>
        <li>Read and download what was released: it costs nothing, as often as you like. It is listed below.</li>
        <li>Ask again in a <a href=${link("ask", dataset)}>session that is open</a>: what its answers already cover is free.</li>
        ${withheld.length ? html`<li>Use what is set aside for ${withheld.join(", ")}, if the curator agrees.</li>` : null}
        ${me.role === "curator"
          ? html`<li><a href=${link("dataset", dataset)}>Raise the budget</a>. It weakens what was promised to the people in the table, so say why to yourself first.</li>`
          : html`<li>Ask the curator of ${dataset} for a larger share.</li>`}
      </ul>
    <//>`;
}
