// The last question before anything is spent: how much, from whose budget, what stays, and that it cannot be undone.

import { html, useState } from "../../vendor/preact.js";
import { reachable } from "../components/budget_bar.js";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { CheckField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { charged, count, epsilon, plural, plusMinus, privacy } from "../format.js";
import { forServer } from "../planner/draft.js";
import { Warnings } from "../planner/warnings.js";
import { go, link } from "../router.js";
import { confirm, requestFor } from "./request_ids.js";

/** The draft as it is released: with the plan's own epsilon, so that a budget that changed meanwhile refuses it. */
export function releasable(draft, view) {
  const { title: _title, study: _study, ...asked } = forServer(draft);
  return { ...asked, epsilon: view.epsilon };
}

/** What was agreed to: planned again, a plan may cost a hair more, and never above its share. */
const limitOf = ({ cost, epsilon: most }) => (cost.proven ? Math.min(most, cost.upper * 1.01) : most);

const COLUMNS = [
  { key: "name", title: "Statistic", head: true },
  {
    key: "counts",
    title: "Counts",
    cell: (one) => (one.unit_of_error === "rows" || one.counts !== "rows" ? one.counts : ""),
  },
  {
    key: "error",
    title: "Error (95%)",
    right: true,
    cell: (one) => (Number.isFinite(one.error) ? plusMinus(one.error) : "not known"),
  },
];

/** Every statistic with its error, and what the errors are assumed from. */
function Promised({ view, draft }) {
  const said = Object.keys(draft.expected ?? {}).length > 0;
  const assumed = view.assumed ?? [];
  return html`
    <div class="confirm-promised" tabindex="0" role="region" aria-label="What will be released, and what its errors rest on">
      <${Table} caption="What will be released" hideCaption columns=${COLUMNS} rows=${view.statistics} rowKey=${(one) => one.name} />
      ${view.about ? html`<p class="small">The ${view.about}.</p>` : null}
      ${
        assumed.length
          ? html`
        <p class="small">These errors rest on ${said ? "what you expect and on " : ""}assumptions that nobody has confirmed:</p>
        <ul class="small confirm-assumed">${assumed.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`
          : null
      }
    </div>`;
}

export function ConfirmRelease({ view, draft, budget, policy, me, onClose }) {
  const [asked] = useState(() => releasable(draft, view));
  const [request, setRequest] = useState(() => requestFor(asked));
  const [accepted, setAccepted] = useState(false);
  const unsized = Number.isFinite(view.assumed_rows) && !request.sent; // nobody said how many rows there are
  const release = () => {
    confirm(request.id, limitOf(view), draft.title);
    go(link("release", request.id));
  };
  const left = policy ? Math.max(0, policy.left - view.cost.upper) : reachable(view.bar, budget).free;
  const noise = (view.notes ?? []).filter((note) => note.includes(" is mostly noise"));
  const grant = budget.analyst ? `your grant in ${view.dataset} (${budget.analyst})` : `the budget of ${view.dataset}`;
  const purse = policy ? `your policy in ${view.dataset}, unless a curator has approved this plan` : grant;
  const last = `nothing: this is the last release the ${policy ? `policy allows in this ${policy.per}` : "budget allows"}`;
  return html`
    <${Dialog} open title="Release these statistics?" onClose=${onClose} actions=${html`
      <${Button} onClick=${onClose}>Not yet<//>
      ${
        request.sent
          ? html`<${Button} kind="primary" onClick=${release}>Show what was released<//>`
          : html`<${Button} kind="primary" disabled=${unsized && !accepted} onClick=${release}>Release and spend ${charged(view.cost.upper)}<//>`
      }`}>
      ${
        request.sent
          ? html`
        <${Notice} tone="warn" title="You have released exactly this already">
          <p>Reading it again costs nothing. New answers to the same questions would be charged again.</p>
          <p><${Button} small onClick=${() => setRequest(requestFor(asked, { again: true }))}>Get new answers and pay again<//></p>
        <//>`
          : null
      }
      <dl class="facts confirm-facts">
        <dt>What</dt><dd>${plural(view.statistics.length, "statistic")} of ${view.dataset}</dd>
        <dt>Will be spent</dt>
        <dd><strong class="number">${charged(view.cost.upper)}</strong>${view.delta > 0 ? ` and δ ${privacy(view.delta)}` : ""}${view.cost.proven ? ", proven" : `; this is an estimate, and it is never more than ${epsilon(view.epsilon)}`}</dd>
        <dt>From</dt><dd>${purse}</dd>
        <dt>Will be left</dt><dd>${left > 0 ? html`<span class="number">${epsilon(left)}</span> for everything after this${policy ? ` in this ${policy.per}` : ""}` : last}</dd>
        <dt>Released by</dt><dd>${me.name}; you can show the answers to anybody</dd>
      </dl>
      <${Promised} view=${view} draft=${draft} />
      ${unsized ? html`<${CheckField} id="confirm-rows" checked=${accepted} onValue=${setAccepted} label=${`Release although nobody said how many rows there are: ${count(view.assumed_rows)} are assumed`} hint="With fewer rows, means and shares have larger errors than shown." />` : null}
      <${Warnings} lines=${view.warnings} />
      ${view.withheld ? html`<p id="confirm-withheld">${view.withheld[0].toUpperCase()}${view.withheld.slice(1)}.</p>` : null}
      ${noise.map((note) => html`<p class="statistic-note" key=${note}>${note}</p>`)}
      <p><strong>This cannot be undone.</strong> What is published cannot be withdrawn, and what is spent does not come back, even if the
        work stops half way. The answers are stored: reading them again is free.</p>
    <//>`;
}
