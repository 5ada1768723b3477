// What the plan costs, always in sight, and the one button that spends.

import { html, useState } from "../../vendor/preact.js";
import { query } from "../api.js";
import { Button } from "../components/button.js";
import { charged, epsilon, plural } from "../format.js";
import { may } from "../login_session.js";
import { ConfirmRelease, releasable } from "../release/confirm.js";
import { wasSent } from "../release/request_ids.js";
import { AskCurator } from "../requests/ask_curator.js";
import { useLoaded } from "../server_data.js";

const PROOF = { planning: "planning …", resting: "proving …", proving: "proving …" };

export function Foot({ view, draft, answer, status, stale, me, budget }) {
  const [open, setOpen] = useState(null); // "release" or "ask"
  const policies = useLoaded(view.by_request ? `/policies${query({ dataset: view.dataset })}` : null).data?.policies;
  const current = answer.draft === draft && !stale; // only what is on the screen can be released
  const released = current && wasSent(releasable(answer.draft, view)); // its answers are there: nothing more is to be paid
  const settled = status === "idle" && current;
  const spoken = settled ? `${plural(view.statistics.length, "statistic")} for ${charged(view.cost.upper)}` : "";
  return html`
    <div class="plan-foot">
      <p class="plan-foot-words">
        <strong>${plural(draft.rows.length, "statistic")}</strong> for <strong class="number" id="plan-cost">${charged(view.cost.upper)}</strong>
        <span class="badge ${view.cost.proven ? "good" : ""}" id="plan-proof">${settled ? (view.cost.proven ? "proven" : "estimate") : (PROOF[status] ?? "waiting")}</span>
        ${view.cost.proven ? null : html`<span class="muted small"> at most ${epsilon(view.epsilon)}</span>`}
      </p>
      ${released ? html`<span class="badge good" id="plan-released">released</span>` : null}
      <p class="unseen" aria-live="polite">${spoken}</p>
      ${may(me, "spend") ? null : html`<span class="small muted">Your role can plan but not release.</span>`}
      ${
        may(me, "spend") && view.by_request
          ? html`<${Button} kind="primary" disabled=${!current || status === "planning"} onClick=${() => setOpen("ask")}>Ask a curator …<//>`
          : null
      }
      ${
        may(me, "spend") && (!view.by_request || policies?.length)
          ? html`<${Button} kind=${view.by_request || released ? "plain" : "primary"} disabled=${!current || status === "planning"} onClick=${() => setOpen("release")}>${released ? "Released: see or repeat …" : view.by_request ? "Release within your policy …" : "Release …"}<//>`
          : null
      }
      ${open === "release" ? html`<${ConfirmRelease} view=${view} draft=${answer.draft} budget=${budget} policy=${view.by_request ? policies?.[0] : null} me=${me} onClose=${() => setOpen(null)} />` : null}
      ${open === "ask" ? html`<${AskCurator} heading="Ask a curator to allow this plan?" what=${`${plural(view.statistics.length, "statistic")} of ${view.dataset}, with the errors that you see now. Nothing is spent: once it is approved, you release it, once.`} cost=${view.cost.upper} body=${{ draft: releasable(answer.draft, view) }} title=${answer.draft.title} onClose=${() => setOpen(null)} />` : null}
    </div>`;
}
