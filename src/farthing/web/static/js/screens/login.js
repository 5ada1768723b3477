// Signing in: with a password, through the organisation's own sign-in, or with the link that the server printed.
import { html, useState } from "../../vendor/preact.js";
import { Button, LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { signIn, wasThrownOut } from "../login_session.js";
import { useAction, useLoaded } from "../server_data.js";

// Why the server sent somebody here, by the word it put into the address.
const REASONS = {
  link: "This link has been used already, or is older than ten minutes. Start farthing serve again for a new one.",
  ended:
    "You were signed out: your sign-in is too old, your password was changed, or a curator has locked you out. What you did not save is still in this tab. If you cannot get in again, ask a curator of this server.",
  provider: "Your organisation's sign-in did not work. Try again; if it still fails, ask a curator of this server.",
};

export default function Login({ search }) {
  const { data, error, reload } = useLoaded("/sign-in");
  const reason = REASONS[search.problem] ?? (wasThrownOut() ? REASONS.ended : null);
  return html`<${Page} title="Sign in" lead="farthing records who spends what of a privacy budget, so it must know who you are.">
    ${reason && html`<${Notice} tone="warn" live><p>${reason}${(data?.local || data?.oidc) && (reason === REASONS.ended ? "" : " Or sign in below.")}</p><//>`}
    <${ErrorBox} error=${error} onRetry=${reload} />
    ${!data && !error && html`<${Loading} label="Asking how to sign in" lines=${3} />`}
    ${
      data &&
      html`<div class="login stack">
      ${
        data.oidc &&
        html`<${Card}>
        <p>Your organisation vouches for you.</p>
        <${LinkButton} kind="primary" href=${String(data.oidc.start).replace(/^\//, "")}>Sign in with ${data.oidc.name}<//>
      <//>`
      }
      ${data.local && html`<${PasswordForm} />`}
      ${
        !data.oidc &&
        !data.local &&
        html`<${Notice} title="There are no accounts yet">
        <p>Open the link that <code>farthing serve</code> printed in its terminal: it signs you in once. To let others in,
          add them under People, or with <code>farthing users add</code>.</p>
      <//>`
      }
      ${
        (data.oidc || data.local) &&
        html`<p class="muted small">No account? A curator of this server can add you under People.
        The person who started the server on this machine can also use the link it printed.</p>`
      }
    </div>`
    }
  <//>`;
}

function PasswordForm() {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const { attempt, checked } = useAttempts();
  const [run, busy, refusal] = useAction(() => signIn(user.trim(), password));
  const wrong = [
    !user.trim() && { id: "login-user", text: "Type your name." },
    !password && { id: "login-password", text: "Type your password." },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, run);
  return html`<${Card} title="With a password">
    <form class="stack" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} title=${refusal?.status === 401 ? "That name and password do not match" : undefined} />
      <${TextField} id="login-user" label="Name" value=${user} onValue=${setUser} error=${problemAt("login-user")} autocomplete="username" autocapitalize="none" spellcheck="false" required />
      <${TextField} id="login-password" type="password" label="Password" value=${password} onValue=${setPassword} error=${problemAt("login-password")} autocomplete="current-password" required />
      <div><${Button} kind="primary" type="submit" busy=${busy}>Sign in<//></div>
    </form>
  <//>`;
}
