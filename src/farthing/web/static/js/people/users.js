// Accounts, for a curator: add somebody, change a role, lock out, remove.
import { html, useState } from "../../vendor/preact.js";
import { patch, post, remove } from "../api.js";
import { Button, CopyButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { SelectField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { moment } from "../format.js";
import { useAction, useLoaded } from "../server_data.js";
import { SHORTEST } from "./password.js";

const ROLES = [
  ["analyst", "Analyst: plans, releases and asks within a grant"],
  ["auditor", "Auditor: reads everything, spends nothing"],
  ["curator", "Curator: declares datasets, sets budgets, adds people"],
];

export function Users({ me }) {
  const { data, error, reload } = useLoaded("/users");
  const [leaving, setLeaving] = useState(null);
  const [change, changing, refusal] = useAction(async (user, body, said) => {
    await patch(`/users/${encodeURIComponent(user.name)}`, body);
    toast(said);
    reload();
  });
  const [drop, dropping, dropRefusal] = useAction(async () => {
    await remove(`/users/${encodeURIComponent(leaving.name)}`);
    setLeaving(null);
    toast(`${leaving.name} is removed.`);
    reload();
  });
  const signsIn = (user) =>
    user.disabled
      ? html`<span class="badge bad">locked out</span>`
      : user.has_password
        ? "with a password"
        : user.oidc_subject
          ? "elsewhere"
          : html`<span class="muted">by link, or not yet</span>`;
  return html`<${Card} title="Everybody">
    <div class="stack">
      <${ErrorBox} error=${error} onRetry=${reload} />
      <${ErrorBox} error=${refusal} />
      ${!data && !error && html`<${Loading} lines=${3} />`}
      ${
        data &&
        html`<${Table} caption="Accounts" hideCaption stacks rows=${data.users} rowKey=${(user) => user.name} columns=${[
          {
            key: "name",
            title: "Name",
            head: true,
            cell: (user) => html`${user.name}${user.name === me.name && html` <span class="badge">you</span>`}`,
          },
          {
            key: "role",
            title: "Role",
            cell: (user) =>
              user.name === me.name
                ? user.role
                : html`<select class="input" aria-label=${`Role of ${user.name}`} disabled=${changing} value=${user.role} onChange=${(event) => change(user, { role: event.target.value }, `${user.name} is now ${event.target.value}.`)}>
          ${ROLES.map(([role]) => html`<option key=${role} value=${role} selected=${role === user.role}>${role}</option>`)}</select>`,
          },
          { key: "signs", title: "Signs in", cell: signsIn },
          { key: "created", title: "Since", cell: (user) => html`<span class="nowrap">${moment(user.created)}</span>` },
          {
            key: "acts",
            title: html`<span class="unseen">Change</span>`,
            cell: (user) =>
              user.name !== me.name &&
              html`<div class="row tight">
          <${Button} small disabled=${changing} onClick=${() => change(user, { disabled: !user.disabled }, user.disabled ? `${user.name} can sign in again.` : `${user.name} is locked out.`)}>${user.disabled ? "Let in" : "Lock out"}<span class="unseen"> ${user.name}</span><//>
          <${Button} small kind="danger" onClick=${() => setLeaving(user)}>Remove<span class="unseen"> ${user.name}</span><//>
        </div>`,
          },
        ]} />`
      }
      <${NewUser} onAdded=${reload} />
    </div>
    <${ConfirmDialog} open=${leaving !== null} title=${`Remove ${leaving?.name ?? ""}?`} confirm="Remove" kind="danger" busy=${dropping} onConfirm=${drop} onClose=${() => setLeaving(null)}>
      <p>Their login sessions and tokens end at once. What they released stays in the ledger under their name. To keep somebody out for a while, lock them out instead.</p>
      <${ErrorBox} error=${dropRefusal} />
    <//>
  <//>`;
}

function NewUser({ onAdded }) {
  const blank = { name: "", role: "analyst", password: "" };
  const [user, setUser] = useState(blank);
  const { attempt, checked, reset } = useAttempts();
  const [added, setAdded] = useState(null);
  const set = (part) => setUser((old) => ({ ...old, ...part }));
  const [run, busy, refusal] = useAction(async () => {
    await post("/users", { name: user.name, role: user.role, password: user.password || null });
    toast(
      `${user.name} is added.${user.role === "analyst" ? " A dataset's page is where you grant them a budget." : ""}`,
    );
    setAdded(user.password ? user : null);
    setUser(blank);
    reset();
    onAdded();
  });
  const wrong = [
    !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(user.name) && {
      id: "user-name",
      text: "The name has lower-case letters, digits, dots and dashes, at most 64.",
    },
    user.password &&
      [...user.password].length < SHORTEST && {
        id: "user-password",
        text: `The password needs ${SHORTEST} characters or more.`,
      },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, run);
  return html`${
    added &&
    html`<${Notice} tone="good" live title=${`${added.name} is added`}>
    <p>Hand over the first password now: it cannot be shown again.</p>
    <pre class="secret" tabindex="0" aria-label=${`First password of ${added.name}`}><code>${added.password}</code></pre>
    <div class="row"><${CopyButton} small text=${added.password} label="Copy the password" /><${Button} small onClick=${() => setAdded(null)}>I have it<//></div>
  <//>`
  }
  <details class="more"><summary>Add somebody</summary>
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} />
      <${TextField} id="user-name" label="Name" hint="Example: grace.hopper" value=${user.name} onValue=${(name) => set({ name })} error=${problemAt("user-name")} autocapitalize="none" spellcheck="false" autocomplete="off" maxlength="64" />
      <${SelectField} id="user-role" label="Role" value=${user.role} onValue=${(role) => set({ role })} options=${ROLES} />
      <${TextField} id="user-password" label="First password" optional hint="Hand it over in person; they can change it. Leave it empty for somebody who signs in through your organisation." value=${user.password} onValue=${(password) => set({ password })} error=${problemAt("user-password")} spellcheck="false" autocomplete="off" />
      <div class="row">
        <${Button} onClick=${() => set({ password: suggested() })}>Suggest a password<//>
        ${user.password && html`<${CopyButton} kind="quiet" text=${user.password} label="Copy it" />`}
      </div>
      <div><${Button} kind="primary" type="submit" busy=${busy}>Add<//></div>
    </form>
  </details>`;
}

/** Twenty letters and digits that cannot be mistaken for each other: about 100 bits. */
function suggested() {
  const letters = "abcdefghijkmnpqrstuvwxyz23456789"; // 32 of them, so that a byte's rest is fair
  const characters = [...crypto.getRandomValues(new Uint8Array(20))].map((byte) => letters[byte % 32]).join("");
  return characters.match(/.{5}/g).join("-");
}
