// One request: what is asked and why, how accurate it would be, what it costs and risks; then the decision.
import { html } from "../../vendor/preact.js";
import { BudgetBar, barOf } from "../components/budget_bar.js";
import { Card } from "../components/card.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { charged, delta, moment, plural } from "../format.js";
import { Decision } from "./decision.js";
import { OwnRequest } from "./own_request.js";
import { RequestState } from "./request_table.js";

const STEPS = { request: "asked", used: "released" };

export function RequestDetails({ request, me, onChanged }) {
  const mine = me.name === request.analyst;
  return html`
    <${Card} title="What is asked"><div class="stack">
      <dl class="facts">
        <dt>Purpose</dt><dd>${request.purpose}</dd>
        <dt>Who</dt><dd>${request.analyst}</dd>
        <dt>Dataset</dt><dd>${request.dataset}</dd>
        <dt>State</dt><dd><${RequestState} state=${request.state} />${request.version > 1 ? ` version ${request.version}, changed by a curator` : ""}</dd>
        <dt>Cost</dt><dd><strong class="number">${charged(request.epsilon)}</strong>${request.delta > 0 ? ` and ${delta(request.delta)}` : ""}, once</dd>
        ${request.expires && request.state === "approved" ? html`<dt>Approved until</dt><dd>${moment(request.expires)}</dd>` : null}
      </dl>
      ${request.reason ? html`<${Notice} tone="info" title="What the curator says"><p>${request.reason}</p><//>` : null}
      ${request.words ? html`<pre>${request.words}</pre>` : null}
      ${
        request.statistics.length
          ? html`<${Table} caption="The statistics, and the errors that were shown" rows=${request.statistics} rowKey=${(one) => one.name} columns=${[
              { key: "name", title: "Statistic", head: true },
              { key: "cells", title: "Numbers", right: true },
              {
                key: "error",
                title: "Error (95%)",
                right: true,
                cell: (one) => html`<span class="number">${one.shown_error}</span>`,
              },
            ]} />`
          : null
      }
      ${request.assumptions.length ? html`<ul class="small muted">${request.assumptions.map((line) => html`<li key=${line}>${line}</li>`)}</ul>` : null}
    </div><//>
    <${Card} title="What it means"><div class="stack">
      ${request.budget ? html`<p>${request.budget.sentence}</p>` : null}
      ${request.budget ? html`<${BudgetBar} bar=${barOf(request.budget)} label=${`Budget of ${request.dataset}`} />` : null}
      <p>${request.odds}</p>
      <p>${request.history.sentence}</p>
    </div><//>
    ${me.role === "curator" ? html`<${Decision} request=${request} onChanged=${onChanged} />` : null}
    ${mine ? html`<${OwnRequest} request=${request} onChanged=${onChanged} />` : null}
    <${Card} title="Steps">
      <ol class="steps-list">${request.steps.map(
        (step) =>
          html`<li key=${step.sequence}>${moment(step.when)}: ${step.actor} ${STEPS[step.kind] ?? step.kind}${step.reason ? ` (${step.reason})` : ""}</li>`,
      )}</ol>
      <p class="small muted">${plural(request.steps.length, "entry", "entries")} of the ledger.</p>
    <//>`;
}
