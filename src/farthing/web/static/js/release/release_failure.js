// How a release ended when it did not end well, in plain words, with the way on.

import { html } from "../../vendor/preact.js";
import { LinkButton } from "../components/button.js";
import { Notice } from "../components/notice.js";
import { epsilon } from "../format.js";
import { link } from "../router.js";
import { forget } from "./request_ids.js";

const WORDS = {
  refused: {
    tone: "warn",
    title: "This was refused, and nothing was spent",
    text: "The ledger did not allow it.",
    next: "Go back to the plan: it shows what is left now, and what fits into it.",
  },
  failed: {
    tone: "bad",
    title: "This could not be run, and nothing was spent",
    text: "Something stopped it before it was charged.",
    next: "Try the plan again. If it fails again, the server's log has the reason.",
  },
  forfeited: {
    tone: "bad",
    title: "This was paid for, and its answer is lost",
    text: "The work stopped after the budget was charged. The charge stays, because the rows may have been read by then; the same numbers are never drawn a second time.",
    next: "To get answers, release the plan again. That is charged again.",
  },
};

/** The epsilon of a price, which is a number or {epsilon, delta}. */
const epsilonOf = (price) => (typeof price === "object" ? price?.epsilon : price);

/** What was asked and what is left, where the refusal says so; otherwise null. */
function lack({ code, fields = {} }) {
  const [asked, left] = [epsilonOf(fields.requested), epsilonOf(fields.remaining)];
  if (code !== "budget_exceeded" || !Number.isFinite(left)) return null;
  const needs = Number.isFinite(asked) ? `It needs ${epsilon(asked)}, and ` : "";
  const stays = left > 1e-5 * (asked || 1) ? `${epsilon(left)} is left` : "nothing is left";
  const sentence = `${needs}${stays} of this budget.`;
  return `${sentence[0].toUpperCase()}${sentence.slice(1)} Somebody else, perhaps you in another window, has spent from it in the meantime.`;
}

export function Ending({ release }) {
  const words = WORDS[release.state];
  if (!words) return null;
  const short = release.request_id.split(":").at(-1);
  return html`
    <${Notice} tone=${words.tone} live title=${words.title}>
      <p>${(release.error && lack(release.error)) ?? words.text}</p>
      ${release.charged ? html`<p>Charged: <span class="number">${epsilon(release.charged.epsilon)}</span>.</p>` : null}
      <p>${words.next}</p>
      ${release.error?.message ? html`<details class="more"><summary>The server's message</summary><p class="small">${release.error.message}</p></details>` : null}
      <p><${LinkButton} kind="primary" href=${link("plan", release.dataset)} onClick=${() => forget(short)}>Back to the plan<//></p>
    <//>`;
}
