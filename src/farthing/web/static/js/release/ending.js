// How a release ended when it did not end well, in plain words, with the way on.

import { html } from "../../vendor/preact.js";
import { LinkButton } from "../components/button.js";
import { Notice } from "../components/notice.js";
import { epsilon } from "../format.js";
import { link } from "../router.js";
import { forget } from "./request.js";

const WORDS = {
  refused: {
    tone: "warn",
    title: "This was refused, and nothing was spent",
    text: "The ledger did not allow it: most often somebody else has spent from the same budget in the meantime.",
    next: "Go back to the plan: it shows what is left now, and what fits into it.",
  },
  failed: {
    tone: "bad",
    title: "This could not be run, and nothing was spent",
    text: "Something stopped it before it was charged.",
    next: "Try the plan again. If it fails again, whoever runs this server finds the reason in its log.",
  },
  forfeited: {
    tone: "bad",
    title: "This was paid for, and its answer is lost",
    text: "The work stopped after the budget was charged. The charge stays, because something may have been told; the same numbers are never drawn a second time.",
    next: "To get answers, release the plan again. That is charged anew.",
  },
};

export function Ending({ release }) {
  const words = WORDS[release.state];
  if (!words) return null;
  const short = release.request_id.split(":").at(-1);
  return html`
    <${Notice} tone=${words.tone} live title=${words.title}>
      <p>${words.text}</p>
      ${release.error?.message ? html`<p class="small">In the server's words: ${release.error.message}</p>` : null}
      ${release.charged ? html`<p>Charged: <span class="number">${epsilon(release.charged.epsilon)}</span>.</p>` : null}
      <p>${words.next}</p>
      <p><${LinkButton} kind="primary" href=${link("plan", release.dataset)} onClick=${() => forget(short)}>Back to the plan<//></p>
    <//>`;
}
