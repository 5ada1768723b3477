// What an analyst can do with a request of their own: release or open it once it is approved, or take it back.
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

/** What is done with each kind of request: where it is sent, where it leads, and what the buttons say. */
const KINDS = {
  plan: {
    path: "/releases",
    body: (request) => ({ request: request.id }),
    link: (_, id) => link("release", id),
    words: ["Release", "Read the answers", "Released"],
  },
  session: {
    path: "/sessions",
    ready: (draft) => draft.alpha,
    body: ({ draft }) => ({ ...draft, confirmed_epsilon: draft.epsilon }),
    link: (request, id) => link("ask", request.dataset, id),
    words: ["Open", "Ask questions", "Opened"],
  },
  series: {
    path: "/series",
    ready: (draft) => draft.date,
    body: ({ draft }) => ({ ...draft, confirmed_epsilon: draft.epsilon }),
    link: (request, id) => link("series", request.dataset, id),
    words: ["Open", "Look at the series", "Opened"],
  },
  table: {
    path: "/synthetic-tables",
    ready: (draft) => draft.epsilon,
    body: ({ draft }) => ({ ...draft, confirmed_epsilon: draft.epsilon }),
    link: (request, id) => link("synthetic", request.dataset, id),
    words: ["Make", "Look at the table", "Made"],
  },
};

export function OwnRequest({ request, onChanged }) {
  const [asking, setAsking] = useState(false);
  const kind = KINDS[request.kind];
  const [verb, read, done] = kind.words;
  const [withdraw, leaving, refusal] = useAction(async () => {
    onChanged(await post(`/requests/${request.id}/withdraw`));
    toast("Withdrawn.");
  });
  const [release, busy, error] = useAction(async () => {
    // The name of its plan is its request id: a second click, or a script, finds the same release.
    const answer = await post(kind.path, { ...kind.body(request), request_id: request.name, wait: 0 });
    setAsking(false);
    go(kind.link(request, answer.request_id ?? answer.id));
  });
  const here = kind.ready?.(request.draft) ?? true;
  if (request.state === "used") {
    return html`<${Card} title=${done}><p>${here ? html`<${LinkButton} kind="primary" href=${kind.link(request, request.request_id)}>${read}<//>` : "You will find it where you asked: in your script or terminal."}</p><//>`;
  }
  if (request.state !== "open" && request.state !== "approved") return null;
  const approved = request.state === "approved";
  return html`<${Card} title=${approved ? `Approved: you may ${verb.toLowerCase()} it` : "Waiting for a curator"}>
    <div class="stack">
      <${ErrorBox} error=${error ?? refusal} />
      <div class="row">
        ${approved && here ? html`<${Button} kind="primary" onClick=${() => setAsking(true)}>${verb} …<//>` : null}
        <${Button} busy=${leaving} onClick=${withdraw}>Withdraw<//>
      </div>
      ${approved && !here ? html`<p>You asked in a script or a terminal: run it again there, with the same words.</p>` : null}
    </div>
    <${ConfirmDialog} open=${asking} title=${`${verb} what was approved?`} confirm=${`${verb} and spend ${charged(request.epsilon)}`} busy=${busy} onConfirm=${release} onClose=${() => setAsking(false)}>
      <p>It is ${done.toLowerCase()} exactly as it was approved, once. <strong>This cannot be undone</strong>; coming back to it is free.</p>
    <//>
  <//>`;
}
