// An account with a budget for each period: the next one is a dataset of its own.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { TextField } from "../components/field.js";
import { toast } from "../components/toast.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";

export function NextPeriod({ data, path }) {
  const { every, period: now } = data.renews;
  const [period, setPeriod] = useState("");
  const { attempt, checked } = useAttempts();
  const [open, busy, refusal] = useAction(async () => {
    const next = period.trim();
    const name = data.name.includes(now) ? data.name.replace(now, next) : `${data.name} ${next}`;
    const made = await post(`${path}/periods`, { name, period: next });
    toast(`${made.name} is declared, with its own budget.`);
    go(link("dataset", made.name));
  });
  const wrong = [!period.trim() && { id: "next-period", text: `Name the ${every}, as ${now} is named.` }].filter(
    Boolean,
  );
  const { problems, problemAt, submit } = checked(wrong, open);
  return html`<details class="more"><summary>Open another ${every}</summary>
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <p class="hint">This dataset is the rows of ${now}. Another ${every} of the same table becomes a dataset of its own, with the budget that every ${every} has.</p>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} />
      <${TextField} id="next-period" label=${`Which ${every}?`} hint=${`Named as ${now} is.`} value=${period} onValue=${setPeriod} error=${problemAt("next-period")} maxlength="10" autocomplete="off" />
      <div><${Button} kind="primary" type="submit" busy=${busy}>Open it<//></div>
    </form>
  </details>`;
}
