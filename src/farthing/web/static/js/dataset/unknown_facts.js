// What nobody knows about a table: what it costs to find it, the button that does, and what was found.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { epsilon, privacy } from "../format.js";
import { may } from "../login_session.js";
import { confirm, forget, requestFor } from "../release/request_ids.js";
import { useAction } from "../server_data.js";

export const ROWS = "rows per unit";
const NAMES = { [ROWS]: "rows of one person" };

/**
 * The card; nothing where everything was declared. `onFound` is called when something was. What a plan offers to find
 * for a price of its own (`elsewhere`, names) has no second price here.
 */
export function UnknownFacts({ data, me, onFound, elsewhere = [] }) {
  const unknown = (data.unknown ?? []).filter((one) => one.finding !== null || !elsewhere.includes(one.name));
  if (!unknown.length) return null;
  const open = unknown.filter((one) => one.finding === null).map((one) => one.name);
  return html`<${Card} title=${open.length > 0 ? "Find what nobody knows" : "What was found"} id="unknown-facts">
    <div class="stack">
      ${
        open.length > 0 &&
        html`<p>These were declared as not known. They can be found privately, for a small part of the budget, and are then used by every plan. Nothing is spent until you confirm.</p>
        <${Search} key=${open.join("\n")} data=${data} me=${me} onFound=${onFound}
          asked=${{ columns: open.filter((name) => name !== ROWS), rows_per_unit: open.includes(ROWS) }} />`
      }
      <${Findings} findings=${unknown.map((one) => one.finding).filter(Boolean)} />
    </div>
  <//>`;
}

function Findings({ findings }) {
  if (!findings.length) return null;
  return html`<ul class="small stack" id="findings">
    ${findings.map(
      (one) =>
        html`<li key=${one.name}>${one.sentence}. <span class="muted">Paid: ${epsilon(one.paid.epsilon)}.</span></li>`,
    )}
  </ul>`;
}

/** What a search would cost and find, and the button that runs it; `asked` are `columns`, `rows_per_unit`, `epsilon`. */
export function Search({ data, me, asked, onFound }) {
  const path = `/datasets/${encodeURIComponent(data.name)}/discoveries`;
  const [{ plan, error }, setPriced] = useState({ plan: null, error: null });
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    let here = true;
    post(`${path}/price`, asked).then(
      (view) => here && setPriced({ plan: view, error: null }),
      (refusal) => here && setPriced({ plan: null, error: refusal }),
    );
    return () => {
      here = false;
    };
  }, []);
  const [start, busy, refusal] = useAction(async () => {
    const { id } = requestFor({ discover: data.name, ...asked, epsilon: plan.epsilon });
    confirm(id, plan.epsilon);
    try {
      let job;
      do {
        // the same request id is the same job: asking again only looks
        job = await post(path, { ...asked, request_id: id, confirmed_epsilon: plan.epsilon, wait: 20 });
      } while (job.state === "queued" || job.state === "running");
      await onFound();
    } finally {
      forget(id);
      setAsking(false);
    }
  });
  if (error) return html`<${ErrorBox} error=${error} />`;
  if (!plan) return html`<${Loading} label="Working out the price" lines=${2} />`;
  return html`
    <dl class="stack small">
      ${plan.searches.map(
        (one) => html`<div key=${one.name}>
        <dt><strong>${NAMES[one.name] ?? one.name}</strong>, for ${epsilon(one.epsilon)}</dt>
        <dd class="muted">${one.prediction}</dd>
      </div>`,
      )}
    </dl>
    ${may(me, "spend") && html`<p><${Button} kind="primary" small onClick=${() => setAsking(true)}>Find it (costs ${epsilon(plan.epsilon)})<//></p>`}
    <${ErrorBox} error=${refusal} />
    <${ConfirmDialog} open=${asking} title="Find what nobody knows?" confirm=${`Find it and spend ${epsilon(plan.epsilon)}`} busy=${busy}
      onConfirm=${start} onClose=${() => setAsking(false)}>
      <p><strong>${epsilon(plan.epsilon)}</strong> of ${privacy(data.budget.remaining.epsilon)} left for ${data.name} will be spent, for good. What is found is kept, and never
        charged again. If nothing is found, that is paid for, too.</p>
      <p>Nothing else is released.</p>
    <//>`;
}
