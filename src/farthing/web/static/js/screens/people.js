// People: one's own password and tokens; for a curator everybody's accounts.
import { html } from "../../vendor/preact.js";
import { Page } from "../components/page.js";
import { Password } from "../people/password.js";
import { Tokens } from "../people/tokens.js";
import { Users } from "../people/users.js";
import { ROLE_WORDS } from "../shell.js";

export default function People({ me }) {
  const curator = me.role === "curator";
  const lead = curator
    ? "Who may sign in and what they may do; and your own password and tokens."
    : "Your own password, and tokens for your scripts.";
  return html`<${Page} title=${curator ? "People" : "Your account"} lead=${lead}>
    <p>You are <strong>${me.name}</strong>, ${ROLE_WORDS[me.role]}.</p>
    ${curator && html`<${Users} me=${me} />`}
    <${Tokens} me=${me} />
    <${Password} me=${me} />
  <//>`;
}
