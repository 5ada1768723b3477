// Tokens for scripts: what they may do, until when; the word itself is shown once.
import { html, useState } from "../../vendor/preact.js";
import { post, remove } from "../api.js";
import { Button, CopyButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog, Dialog } from "../components/dialog.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { CheckField, SelectField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { moment, plural } from "../format.js";
import { useAction, useLoaded } from "../server_data.js";

const SCOPES = {
  read: ["Read", "Look at datasets, budgets, releases and the ledger, as far as you may."],
  plan: ["Plan", "See errors and prices, and keep drafts. Spends nothing."],
  spend: ["Spend", "Release, open query sessions and ask: uses up budget, which never comes back."],
  manage: ["Manage", "Declare datasets, change budgets and people."],
};
const DAYS = [
  [7, "a week"],
  [30, "30 days"],
  [90, "90 days"],
  [365, "a year"],
].map(([days, words]) => [String(days), words]);

export function Tokens({ me }) {
  const { data, error, reload } = useLoaded("/tokens");
  const [newToken, setNewToken] = useState(null);
  const [ending, setEnding] = useState(null);
  const [revoke, busy, refusal] = useAction(async () => {
    await remove(`/tokens/${encodeURIComponent(ending.id)}`);
    setEnding(null);
    toast("The token is revoked.");
    reload();
  });
  const live = (data?.tokens ?? []).filter((one) => one.state === "live");
  const ended = (data?.tokens.length ?? 0) - live.length;
  return html`<${Card} title="Tokens for scripts">
    <p>A token lets a script (<code>farthing.Client</code>) act for you, without your password. Give it only what it needs.</p>
    <div class="stack">
      <${ErrorBox} error=${error} onRetry=${reload} />
      ${!data && !error && html`<${Loading} lines=${2} />`}
      ${data && live.length === 0 && html`<p class="muted">You have no valid token.</p>`}
      ${
        live.length > 0 &&
        html`<${Table} caption="Your tokens" hideCaption stacks rows=${live} rowKey=${(one) => one.id} columns=${[
          { key: "label", title: "For", head: true, cell: (one) => one.label || "no label" },
          {
            key: "scopes",
            title: "May",
            cell: (one) => one.scopes.map((scope) => SCOPES[scope]?.[0].toLowerCase() ?? scope).join(", "),
          },
          { key: "expires", title: "Until", cell: (one) => html`<span class="nowrap">${moment(one.expires)}</span>` },
          {
            key: "end",
            title: html`<span class="unseen">End it</span>`,
            cell: (one) =>
              html`<${Button} small kind="danger" onClick=${() => setEnding(one)}>Revoke<span class="unseen"> ${one.label || "the token without a label"}</span><//>`,
          },
        ]} />`
      }
      ${ended > 0 && html`<p class="muted small">${plural(ended, "more token")} of yours no longer ${ended === 1 ? "works" : "work"}.</p>`}
      <${NewToken} me=${me} onNewToken=${(one) => {
        setNewToken(one);
        reload();
      }} />
    </div>
    <${Dialog} open=${newToken !== null} title="Copy the token now" onClose=${() => setNewToken(null)} actions=${
      newToken &&
      html`
      <${CopyButton} kind="primary" text=${newToken.token} label="Copy the token" /><${Button} onClick=${() => setNewToken(null)}>I have it<//>`
    }>
      <p>It is shown this once and cannot be shown again: the server keeps only a fingerprint of it.</p>
      <pre class="secret" tabindex="0" aria-label="The token"><code>${newToken?.token}</code></pre>
      <p class="small muted">Keep it like a password. In Python: <code>farthing.Client("${location.origin}", token)</code>.</p>
    <//>
    <${ConfirmDialog} open=${ending !== null} title="Revoke this token?" confirm="Revoke it" kind="danger" busy=${busy} onConfirm=${revoke} onClose=${() => setEnding(null)}>
      <p>Scripts that use ${ending?.label ? html`the token <strong>${ending.label}</strong>` : "it"} are refused from now on. It cannot be taken back; a new one can be made.</p>
      <${ErrorBox} error=${refusal} />
    <//>
  <//>`;
}

function NewToken({ me, onNewToken }) {
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState(["read"]);
  const [days, setDays] = useState("30");
  const { attempt, checked, reset } = useAttempts();
  const [run, busy, refusal] = useAction(async () => {
    const newToken = await post("/tokens", { label: label.trim(), scopes, days: Number(days) });
    setLabel("");
    reset();
    onNewToken(newToken);
  });
  const wrong = [
    !label.trim() && { id: "token-label", text: "Say what it is for, so that you know later which one to revoke." },
    !scopes.length && { id: "token-read", text: "Choose at least one permission." },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, run);
  const toggle = (scope, on) =>
    setScopes((old) => Object.keys(SCOPES).filter((one) => (one === scope ? on : old.includes(one))));
  return html`<details class="more"><summary>Make a token</summary>
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} />
      <${TextField} id="token-label" label="What is it for?" hint="Example: monthly report" value=${label} onValue=${setLabel} maxlength="100" error=${problemAt("token-label")} autocomplete="off" />
      <fieldset><legend>What may it do?</legend><div class="choices">
        ${me.scopes.map((scope) => html`<${CheckField} key=${scope} id=${"token-" + scope} label=${SCOPES[scope]?.[0] ?? scope} hint=${SCOPES[scope]?.[1]} checked=${scopes.includes(scope)} onValue=${(on) => toggle(scope, on)} />`)}
      </div></fieldset>
      ${scopes.includes("spend") && html`<${Notice} tone="warn"><p>Anybody who has this token can spend your budget.</p><//>`}
      <${SelectField} id="token-days" label="For how long?" value=${days} onValue=${setDays} options=${DAYS} />
      <div><${Button} kind="primary" type="submit" busy=${busy}>Make the token<//></div>
    </form>
  </details>`;
}
