// Asking a curator: what it would cost, and what the answers are for.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { TextArea } from "../components/field.js";
import { charged } from "../format.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";

/** `body` is what the server takes: {draft}, {session}, {series} or {table}, with its own epsilon; `what` is it in words. */
export function AskCurator({ heading, what, cost, body, title, onClose }) {
  const [purpose, setPurpose] = useState("");
  const [ask, busy, error] = useAction(async () => {
    const request = await post("/requests", { ...body, ...(title ? { title } : {}), purpose: purpose.trim() });
    go(link("requests", request.id));
  });
  return html`<${Dialog} open title=${heading} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose} disabled=${busy}>Not yet<//>
    <${Button} kind="primary" busy=${busy} disabled=${!purpose.trim()} onClick=${ask}>Ask for ${charged(cost)}<//>`}>
    <${ErrorBox} error=${error} />
    <p>${what}</p>
    <${TextArea} label="What are the answers for?" hint="The curator reads it." value=${purpose} onValue=${setPurpose} rows="3" maxlength="1000" />
  <//>`;
}
