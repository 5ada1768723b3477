// Why a wish cannot be, and the ways out, each one a button.

import { html } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { Notice } from "../components/notice.js";
import { epsilon, listed, plusMinus } from "../format.js";

/** What stands in the way, in words. `own` is the statistic that was to be changed, if it was one. */
function reason({ fields = {} }, own, tried) {
  const others = (fields.blocking ?? []).filter((name) => name !== own);
  const wish = own && tried ? `${plusMinus(tried)} for ${own}` : "This";
  if (others.length) return `${wish} does not go together with the ${others.length > 1 ? "locks" : "lock"} on ${listed(others)}.`;
  const needs = Number.isFinite(fields.epsilon) && fields.epsilon < 45 ? ` It would take ${epsilon(fields.epsilon)}.` : "";
  return `${wish} is more than this plan's share of the budget allows.${needs}`;
}

/** A refusal with its ways out; an error that is no refusal is said in the server's words. */
export function Refusal({ refusal, own = null, ownKey = null, actions }) {
  const { error, cause } = refusal;
  if (error.code !== "infeasible") return html`<${Notice} tone="bad" live title="This did not work"><p>${error.message}</p><//>`;
  const { blocking = [], closest, hardest } = error.fields ?? {};
  const others = blocking.filter((name) => name !== own);
  const mine = own !== null && (hardest === own || (hardest === undefined && !others.length));
  return html`
    <${Notice} tone="warn" live title="That cannot be, as things stand">
      <p>${reason(error, own, cause.tried)}</p>
      <div class="row">
        ${mine && closest > 0 ? html`<${Button} small onClick=${() => actions.make(ownKey, actions.kept(closest))}>Closest possible: ${plusMinus(closest)}<//>` : null}
        ${others.map((name) => html`
          <${Button} key=${name} small onClick=${() => actions.unlockNamed(name, cause)}>Unlock ${name}<//>`)}
        ${hardest && hardest !== own && closest > 0 ? html`<${Button} small onClick=${() => actions.loosen(hardest, actions.kept(closest), cause)}>Loosen ${hardest} to ${plusMinus(closest)}<//>` : null}
      </div>
      <details class="more"><summary>In the planner's own words</summary><p class="small">${error.message}</p></details>
    <//>`;
}
