// Where nobody knows how many rows there are: which errors rest on a guess, and a count that can be paid for first.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { Notice } from "../components/notice.js";
import { count, epsilon, plural, privacy } from "../format.js";
import { may } from "../login_session.js";
import { confirm, forget, requestFor } from "../release/request_ids.js";
import { useAction } from "../server_data.js";

const FEW = 2; // statistics that are named

/** Which errors are for an assumed number of rows, in words. */
function whose(view) {
  if (view.sized.length === view.statistics.length) return "Every error here is";
  if (view.sized.length === 1) return `The error of ${view.sized[0]} is`;
  const named = view.sized.length > FEW ? plural(view.sized.length, "statistic") : view.sized.join(" and ");
  return `The errors of ${named} are`;
}

/** What stands above a plan whose errors are for an assumed size, with the way to have the rows counted. */
export function AssumedRows({ view, budget, me, onCounted }) {
  const [asking, setAsking] = useState(false);
  const price = view.counting;
  const [start, busy, refusal] = useAction(async () => {
    const query = { rows: view.dataset, share: price };
    const { id } = requestFor(query);
    confirm(id, price);
    try {
      let job;
      do {
        // the same request id is the same job: asking again only looks
        job = await post(`/datasets/${encodeURIComponent(view.dataset)}/rows`, {
          request_id: id,
          confirmed_epsilon: price,
          wait: 20,
        });
      } while (job.state === "queued" || job.state === "running");
      onCounted();
    } finally {
      forget(id);
      setAsking(false);
    }
  });
  return html`
    <${Notice} tone="warn" id="plan-opening" title=${`${whose(view)} for an assumed size: ${count(view.assumed_rows)} rows`}>
      <p>The number of rows is not known. If you know roughly how many there are, say so below, and the errors are predicted for it. That costs nothing.</p>
      ${
        price !== null && may(me, "spend")
          ? html`
        <p>If nobody knows, have them counted: privately, for a small part of the budget. You then see this plan again, before you spend the rest.</p>
        <p><${Button} small onClick=${() => setAsking(true)}>Count the rows first (costs ${epsilon(price)})<//></p>`
          : null
      }
      <${ErrorBox} error=${refusal} />
      <${ConfirmDialog} open=${asking} title="Count the rows first?" confirm=${`Count and spend ${epsilon(price)}`} busy=${busy}
        onConfirm=${start} onClose=${() => setAsking(false)}>
        <p><strong>${epsilon(price)}</strong> of ${privacy(budget.remaining.epsilon)} left for ${view.dataset} will be spent, for good. The count has noise, and is
          kept: it is used by every plan and session of yours from then on, and never charged again.</p>
        <p>Nothing else is released: this plan comes back with its errors for the rows that were counted.</p>
      <//>
    <//>`;
}

/** What was counted, and what the errors make of it. */
export function CountedRows({ counted }) {
  return html`<p class="hint" id="plan-counted">${count(counted.rows)} rows were counted (${count(counted.lower)} to ${count(counted.upper)}, 95%). Errors are for ${count(counted.lower)}, the low end, unless you say otherwise.</p>`;
}
