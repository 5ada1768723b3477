// What the plan costs, always in sight, and the one button that spends.

import { html, useState } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { charged, epsilon, plural } from "../format.js";
import { may } from "../login_session.js";
import { ConfirmRelease } from "../release/confirm.js";

const PROOF = { planning: "planning …", resting: "proving …", proving: "proving …" };

export function Foot({ view, draft, answer, status, stale, me, budget }) {
  const [open, setOpen] = useState(false);
  const current = answer.draft === draft && !stale; // only what is on the screen can be released
  const settled = status === "idle" && current;
  const spoken = settled ? `${plural(view.statistics.length, "statistic")} for ${charged(view.cost.upper)}` : "";
  return html`
    <div class="plan-foot">
      <p class="plan-foot-words">
        <strong>${plural(draft.rows.length, "statistic")}</strong> for <strong class="number" id="plan-cost">${charged(view.cost.upper)}</strong>
        <span class="badge ${view.cost.proven ? "good" : ""}" id="plan-proof">${settled ? (view.cost.proven ? "proven" : "estimate") : (PROOF[status] ?? "waiting")}</span>
        ${view.cost.proven ? null : html`<span class="muted small"> at most ${epsilon(view.epsilon)}</span>`}
      </p>
      <p class="unseen" aria-live="polite">${spoken}</p>
      ${
        may(me, "spend")
          ? html`<${Button} kind="primary" disabled=${!current || status === "planning"} onClick=${() => setOpen(true)}>Release …<//>`
          : html`<span class="small muted">Your role can plan but not release.</span>`
      }
      ${open ? html`<${ConfirmRelease} view=${view} draft=${answer.draft} budget=${budget} me=${me} onClose=${() => setOpen(false)} />` : null}
    </div>`;
}
