// What an analyst can do with a request of their own: release it once it is approved, or take it back.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button, LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { toast } from "../components/toast.js";
import { charged } from "../format.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";

export function OwnRequest({ request, onChanged }) {
  const [asking, setAsking] = useState(false);
  const [withdraw, leaving, refusal] = useAction(async () => {
    onChanged(await post(`/requests/${request.id}/withdraw`));
    toast("Withdrawn.");
  });
  const [release, busy, error] = useAction(async () => {
    // The name of its plan is its request id: a second click, or a script, finds the same release.
    const answer = await post("/releases", { request: request.id, request_id: request.name, wait: 0 });
    setAsking(false);
    go(link("release", answer.request_id));
  });
  if (request.state === "used") {
    return html`<${Card} title="Released"><p><${LinkButton} kind="primary" href=${link("release", request.request_id)}>Read the answers<//></p><//>`;
  }
  if (request.state !== "open" && request.state !== "approved") return null;
  const approved = request.state === "approved";
  return html`<${Card} title=${approved ? "Approved: you may release it" : "Waiting for a curator"}>
    <div class="stack">
      <${ErrorBox} error=${error ?? refusal} />
      <div class="row">
        ${approved ? html`<${Button} kind="primary" onClick=${() => setAsking(true)}>Release …<//>` : null}
        <${Button} busy=${leaving} onClick=${withdraw}>Withdraw<//>
      </div>
    </div>
    <${ConfirmDialog} open=${asking} title="Release this plan?" confirm=${`Release and spend ${charged(request.epsilon)}`} busy=${busy} onConfirm=${release} onClose=${() => setAsking(false)}>
      <p>It is released exactly as it was approved, once. <strong>This cannot be undone</strong>; reading the answers again is free.</p>
    <//>
  <//>`;
}
