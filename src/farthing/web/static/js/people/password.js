// Changing one's own password.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { TextField } from "../components/field.js";
import { toast } from "../components/toast.js";
import { useAction } from "../server_data.js";

export const SHORTEST = 12;

export function Password({ me }) {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const { attempt, checked, reset } = useAttempts();
  const byLink = me.via === "link"; // then there may be no old one yet
  const [run, busy, refusal] = useAction(async () => {
    await post("/password", { old: old || null, new: fresh }, { stay: true });
    setOld("");
    setFresh("");
    reset();
    toast("The password is changed. Other browsers in which you were signed in are signed out.");
  });
  const wrong = [
    !byLink && !old && { id: "password-old", text: "Type the password you have now." },
    [...fresh].length < SHORTEST && {
      id: "password-new",
      text: `The new one needs ${SHORTEST} characters or more; four words are easy to remember.`,
    },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, run);
  return html`<${Card} title="Your password">
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} title=${refusal?.status === 401 ? "That is not the password you have now" : undefined} />
      <input class="unseen" type="text" autocomplete="username" value=${me.name} readonly tabindex="-1" aria-hidden="true" />
      <${TextField} id="password-old" type="password" label="Password now" optional=${byLink} hint=${byLink ? "Leave it empty if you came by a link and never had one." : null} value=${old} onValue=${setOld} error=${problemAt("password-old")} autocomplete="current-password" />
      <${TextField} id="password-new" type="password" label="New password" hint=${`At least ${SHORTEST} characters. Tokens stay as they are.`} value=${fresh} onValue=${setFresh} error=${problemAt("password-new")} autocomplete="new-password" />
      <div><${Button} type="submit" busy=${busy}>Change it<//></div>
    </form>
  <//>`;
}
