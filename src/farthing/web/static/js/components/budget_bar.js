// The budget bar: spent, running, this plan, set aside, out of reach, free. In colour, and always in words as well.
import { html } from "../../vendor/preact.js";
import { privacy } from "../format.js";

const CRUMB = 1e-5; // of a budget: what rounding leaves of one that is used up is not worth a number

/** Whether it is a grant of nothing: its analyst plans, and asks a curator for each release. */
export const isAsking = (budget) => Boolean(budget?.analyst) && budget.total.epsilon === 0;

/** What is free, without the crumbs that rounding up has left. */
export const worthAWord = (free, total) => (free > CRUMB * total ? free : 0);

/** A part in words: a small rest is called one, and not to the last digit. */
const partText = (value, total) =>
  value > 0 && value < 1e-3 * total ? `under ${privacy(1e-3 * total)}` : privacy(value);

const PARTS = [
  ["spent", "spent"],
  ["waiting", "being spent now"],
  ["plan", "this plan"],
  ["withheld", "set aside"],
  ["beyond", "out of reach"],
  ["free", "free"],
];

/**
 * The parts of a bar from the server's BudgetView (which knows no plan). They add up to the total, unless more is spent
 * than the budget, which can be lowered, allows now; what composition saves beyond that is in the view's sentence.
 * `waiting` is a part of what is spent.
 */
export function barOf(budget) {
  const total = Math.max(0, budget.total.epsilon);
  const gone = Math.max(0, budget.spent.epsilon ?? total); // null: no finite epsilon holds for it
  const waiting = Math.min(gone, Math.max(0, budget.waiting ?? 0));
  const aside = Object.values(budget.withheld ?? {}).reduce((sum, one) => sum + one.epsilon, 0);
  const withheld = Math.min(Math.max(0, total - gone), aside);
  return reachable(
    { total, spent: gone - waiting, waiting, withheld, plan: 0, free: Math.max(0, total - gone - withheld) },
    budget,
  );
}

/** A bar whose free part is what would be admitted: of a grant, others may have spent a part from the whole budget. */
export function reachable(bar, budget) {
  const free = worthAWord(Math.min(bar.free, (bar.reach ?? budget.room.epsilon) - bar.plan), bar.total);
  return { ...bar, free, beyond: worthAWord(bar.free - free, bar.total) };
}

/**
 * <${BudgetBar} bar=${plan.bar} label="Budget of census" />
 * Widths are shares of the sum of the parts, so that the bar is always exactly full. `always` names parts that are named
 * even when there is nothing of them.
 */
export function BudgetBar({ bar, label = "Budget", legend = true, always = ["spent", "free"], ...rest }) {
  const parts = PARTS.map(([key, word]) => [key, word, Math.max(0, bar[key] ?? 0)]).filter(
    ([key, , value]) => value > 0 || always.includes(key),
  );
  const whole = parts.reduce((sum, [, , value]) => sum + value, 0);
  const words = parts.map(([, word, value]) => `${partText(value, bar.total)} ${word}`).join(", ");
  return html`<div ...${rest}>
    <div class="bar" role="img" aria-label=${`${label}: ${words}, of ${privacy(bar.total)} in all`}>
      ${parts.map(([key, , value]) => html`<div key=${key} class=${"bar-part " + key} data-value=${value} style=${{ width: `${whole > 0 ? (100 * value) / whole : 0}%` }}></div>`)}
    </div>
    ${
      legend &&
      html`<ul class="bar-legend" aria-hidden="true">
      ${parts.map(
        ([key, word, value]) => html`<li key=${key}>
        <span class="bar-swatch"><span class=${"bar-part " + key}></span></span>
        <span><span class="number strong">${partText(value, bar.total)}</span> ${word}</span>
      </li>`,
      )}
      <li class="muted">of ε ${privacy(bar.total)}</li>
    </ul>`
    }
  </div>`;
}
