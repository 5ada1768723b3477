// A curator's decision: approve, change, or decline with a reason.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { CheckField, NumberField, TextField } from "../components/field.js";
import { toast } from "../components/toast.js";
import { charged } from "../format.js";
import { useAction } from "../server_data.js";

export function Decision({ request, onChanged }) {
  const [reason, setReason] = useState("");
  const [day, setDay] = useState("");
  const [changing, setChanging] = useState(false);
  const [unsaid, setUnsaid] = useState(false);
  const path = `/requests/${request.id}`;
  const until = day ? { expires: day } : {};
  const [send, busy, error] = useAction(async (word, body, said) => {
    onChanged(await post(`${path}/${word}`, body));
    toast(said);
    setReason("");
    setChanging(false);
  });
  const open = request.state === "open";
  if (!open && request.state !== "approved") return null;
  const said = reason.trim();
  const needed = () => {
    setUnsaid(!said);
    if (!said) document.getElementById("decision-reason")?.focus();
    return !said;
  };
  const decline = () => needed() || send("decline", { reason: said }, "Declined.");
  return html`<${Card} title=${open ? "Decide" : "Approved, and not used yet"}>
    <div class="stack narrow">
      <${ErrorBox} error=${error} />
      ${open ? html`<${TextField} label="Approved until" optional hint="A day such as 2027-03-31, UTC; in 90 days by default." value=${day} onValue=${setDay} placeholder="YYYY-MM-DD" />` : null}
      <${TextField} id="decision-reason" label="Reason" optional=${open} hint="The analyst reads it. It is needed to decline or to change." error=${unsaid && !said ? "Say why: the analyst reads it." : ""} value=${reason} onValue=${setReason} maxlength="1000" />
      <div class="row">
        ${open ? html`<${Button} kind="primary" busy=${busy} onClick=${() => send("approve", { version: request.version, ...until }, "Approved.")}>Approve ${charged(request.epsilon)}<//>` : null}
        <${Button} kind="danger" busy=${busy} onClick=${decline}>${open ? "Decline" : "Take it back"}<//>
        ${request.kind === "plan" ? html`<${Button} onClick=${() => setChanging(!changing)} aria-expanded=${String(changing)}>Change the plan …<//>` : null}
      </div>
      ${changing ? html`<${Change} request=${request} reason=${said} busy=${busy} onSend=${(draft) => send("change", { draft, reason: said, ...until }, "Changed and approved.")} />` : null}
      <p class="small muted">An approval is for exactly this, once. The dataset's own budget has the last word.</p>
    </div>
  <//>`;
}

/** Fewer statistics, or another epsilon: a new version that the analyst sees. */
function Change({ request, reason, busy, onSend }) {
  const [epsilon, setEpsilon] = useState(request.draft.epsilon ?? request.epsilon);
  const [dropped, setDropped] = useState([]);
  const names = request.statistics.map((one) => one.name);
  const entries = request.draft.statistics.filter((_, at) => !dropped.includes(at));
  const toggle = (at) => setDropped(dropped.includes(at) ? dropped.filter((one) => one !== at) : [...dropped, at]);
  const ready = reason && entries.length && epsilon > 0;
  return html`<fieldset class="stack">
    <legend>Approve this instead</legend>
    ${names.map((name, at) => html`<${CheckField} key=${name} label=${name} checked=${!dropped.includes(at)} onValue=${() => toggle(at)} />`)}
    <${NumberField} label="Epsilon" value=${epsilon} onValue=${setEpsilon} unit="ε" />
    <div><${Button} disabled=${!ready} busy=${busy} onClick=${() => onSend({ ...request.draft, statistics: entries, epsilon })}>Approve the changed plan<//></div>
    ${reason ? null : html`<p class="hint">Say why, above.</p>`}
  </fieldset>`;
}
