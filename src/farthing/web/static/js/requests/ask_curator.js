// Asking for a plan: what it would cost, and what the answers are for.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { TextArea } from "../components/field.js";
import { charged, plural } from "../format.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";

/** `draft` is what the server takes, with the plan's own epsilon. */
export function AskCurator({ view, draft, title, onClose }) {
  const [purpose, setPurpose] = useState("");
  const [ask, busy, error] = useAction(async () => {
    const named = title ? { ...draft, title } : draft;
    const request = await post("/requests", { draft: named, purpose: purpose.trim() });
    go(link("requests", request.id));
  });
  return html`<${Dialog} open title="Ask a curator to allow this plan?" onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose} disabled=${busy}>Not yet<//>
    <${Button} kind="primary" busy=${busy} disabled=${!purpose.trim()} onClick=${ask}>Ask for ${charged(view.cost.upper)}<//>`}>
    <${ErrorBox} error=${error} />
    <p>${plural(view.statistics.length, "statistic")} of ${view.dataset}, with the errors that you see now. Nothing is spent: once it is approved, you release it, once.</p>
    <${TextArea} label="What are the answers for?" hint="The curator reads it." value=${purpose} onValue=${setPurpose} rows="3" maxlength="1000" />
  <//>`;
}
