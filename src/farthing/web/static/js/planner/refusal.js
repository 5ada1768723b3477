// Why a wish cannot be, and the ways out, each one a button.

import { html } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { Notice } from "../components/notice.js";
import { listText } from "../format.js";

/** A number that is offered, or that was asked for, with all of its digits, so that no two are told alike. */
const exactly = (value) => `±${value.toLocaleString("en", { maximumSignificantDigits: 15 })}`;

/** What stands in the way, in words. `own` is the statistic that was to be changed, if it was one. */
function reason({ fields = {} }, own, tried) {
  const others = (fields.blocking ?? []).filter((name) => name !== own);
  const wish = own && tried ? `${exactly(tried)} for ${own}` : "This";
  if (others.length)
    return `${wish} conflicts with the ${others.length > 1 ? "locks" : "lock"} on ${listText(others)}.`;
  const needs =
    Number.isFinite(fields.epsilon) && fields.epsilon < 45
      ? ` It would take an epsilon of ${fields.epsilon.toLocaleString("en", { maximumSignificantDigits: 15 })}.`
      : "";
  return `${wish} is more than this plan's share of the budget allows.${needs}`;
}

/** A refusal with its ways out; an error that is no refusal is said in the server's words. */
export function Refusal({ refusal, own = null, ownKey = null, actions }) {
  const { error, cause } = refusal;
  if (error.code !== "infeasible")
    return html`<${Notice} tone="bad" live title="This did not work"><p>${error.message}</p><//>`;
  // Every offer was tried by the planner with all else as it is: it is passed on as it came.
  const { blocking = [], offers = {}, holds = {} } = error.fields ?? {};
  // Beside it stands the error of one release, which may be smaller: an offer says in how many it is kept.
  const offered = (name) => `${exactly(offers[name])}${holds[name] ? ` ${holds[name]}` : ""}`;
  const others = blocking.filter((name) => name !== own);
  return html`
    <${Notice} tone="warn" live title="This does not fit as things stand">
      <p>${reason(error, own, cause.tried)}</p>
      <div class="row">
        ${own !== null && offers[own] > 0 ? html`<${Button} small onClick=${() => actions.make(ownKey, offers[own])}>Closest possible: ${offered(own)}<//>` : null}
        ${others.map(
          (name) => html`
          <${Button} key=${name} small onClick=${() => actions.unlockNamed(name, cause)}>Unlock ${name}<//>`,
        )}
        ${Object.entries(offers)
          .filter(([name]) => name !== own)
          .map(
            ([name, error]) => html`
          <${Button} key=${`loosen ${name}`} small onClick=${() => actions.loosen(name, error, cause)}>Loosen ${name} to ${offered(name)}<//>`,
          )}
      </div>
      <details class="more"><summary>The planner's message</summary><p class="small">${error.message}</p></details>
    <//>`;
}
