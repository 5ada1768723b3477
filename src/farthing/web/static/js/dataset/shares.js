// How a curator divides a budget: the whole, parts for analysts, parts set aside.
import { html, useState } from "../../vendor/preact.js";
import { put } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { NumberField, SelectField, TextField } from "../components/field.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { privacy } from "../format.js";
import { useAction, useLoaded } from "../server_data.js";

/** A form for an amount: what it is for (`naming`, with its own `check`), epsilon, delta; `zero` allows 0. */
function AmountForm({ id, title, button, start, zero = false, naming, check = () => null, save }) {
  const [amount, setAmount] = useState(start);
  const { attempt, checked, reset } = useAttempts();
  const set = (part) => setAmount((old) => ({ ...old, ...part }));
  const [run, busy, refusal] = useAction(async () => {
    await save(amount);
    reset();
  });
  const wrong = [
    check(),
    !(amount.epsilon !== null && (amount.epsilon > 0 || (zero && amount.epsilon === 0)) && amount.epsilon <= 1000) && {
      id: id + "-epsilon",
      text: `Epsilon is a number ${zero ? "from 0 to" : "above 0, at most"} 1,000.`,
    },
    !(amount.delta !== null && amount.delta >= 0 && amount.delta < 1) && {
      id: id + "-delta",
      text: "Delta is a number from 0 to below 1.",
    },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, run);
  return html`<details class="more"><summary>${title}</summary>
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refusal} />
      ${naming?.(problemAt)}
      <div class="pair">
        <${NumberField} id=${id + "-epsilon"} label="Epsilon (ε)" value=${amount.epsilon} onValue=${(epsilon) => set({ epsilon })} error=${problemAt(id + "-epsilon")} />
        <${NumberField} id=${id + "-delta"} label="Delta (δ)" value=${amount.delta} onValue=${(delta) => set({ delta })} error=${problemAt(id + "-delta")} />
      </div>
      <div><${Button} kind="primary" type="submit" busy=${busy}>${button}<//></div>
    </form>
  </details>`;
}

export function BudgetForm({ budget, path, reload }) {
  const save = async ({ epsilon, delta }) => {
    await put(path + "/budget", { epsilon, delta });
    toast("The budget is changed; the ledger records by whom.");
    reload();
  };
  return html`<${AmountForm} id="budget" title="Change the budget" button="Change the budget" save=${save}
    start=${{ epsilon: budget.total.epsilon, delta: budget.total.delta }}
    naming=${() => html`<p class="hint">More budget means that more may be learned about each person. What is spent stays spent.</p>`} />`;
}

export function Grants({ data, me, path, reload }) {
  const curator = me.role === "curator";
  const people = useLoaded(curator ? "/users" : null);
  const [user, setUser] = useState("");
  const analysts = (people.data?.users ?? [])
    .filter((one) => one.role === "analyst")
    .map((one) => [one.name, one.name]);
  const save = async ({ epsilon, delta }) => {
    const grant = await put(`${path}/grants/${encodeURIComponent(user)}`, { epsilon, delta });
    const [own, left] = [epsilon - (grant.spent.epsilon ?? epsilon), grant.remaining.epsilon];
    const less =
      left < own * 0.999
        ? ` The budget of ${data.name} has only ε ${privacy(left)} left, so they can spend no more than that now.`
        : "";
    const may = epsilon ? `spend up to ε ${privacy(epsilon)} in all` : "plan, and ask you for each release";
    toast(`${user} may now ${may}.${less}`, less ? 12 : 5);
    setUser("");
    reload();
  };
  return html`<${Card} title="Grants of analysts">
    <div class="stack">
      ${
        data.grants.length
          ? html`<${Table} caption="What each analyst may spend, out of the budget above" rows=${data.grants} rowKey=${(one) => one.analyst} columns=${[
              { key: "analyst", title: "Analyst", head: true },
              { key: "total", title: "May spend ε", right: true, cell: (one) => privacy(one.total.epsilon) },
              { key: "spent", title: "Spent ε", right: true, cell: (one) => privacy(one.spent.epsilon) },
              { key: "left", title: "Left ε", right: true, cell: (one) => privacy(one.remaining.epsilon) },
            ]} />`
          : html`<p class="muted">Nobody has a grant yet. Analysts see this dataset only with one; a grant of 0 lets them plan, and ask you for each release.</p>`
      }
      ${curator && html`<${ErrorBox} error=${people.error} onRetry=${people.reload} />`}
      ${
        curator &&
        people.data &&
        (analysts.length
          ? html`<${AmountForm} id="grant" title="Grant a part of it" button="Grant it" start=${{ epsilon: null, delta: 0 }} zero save=${save}
            check=${() => !user && { id: "grant-user", text: "Choose an analyst." }}
            naming=${(problemAt) => html`<${SelectField} id="grant-user" label="Analyst" hint="0 lets them plan, and ask you for each release. A new grant replaces the one they have." value=${user} onValue=${setUser} options=${[["", "Choose …"], ...analysts]} error=${problemAt("grant-user")} />`} />`
          : html`<p>There are no analysts yet: <a href="#/people">add one</a>, then grant a part of the budget here.</p>`)
      }
    </div>
  <//>`;
}

export function Reserves({ data, path, reload }) {
  const [label, setLabel] = useState("");
  const reserves = Object.entries(data.budget?.withheld ?? {});
  const save = async ({ epsilon, delta }) => {
    await put(`${path}/reserves/${encodeURIComponent(label.trim())}`, { epsilon, delta });
    toast(
      epsilon === 0
        ? `Nothing is set aside for ${label.trim()} any more.`
        : `ε ${privacy(epsilon)} is set aside for ${label.trim()}.`,
    );
    setLabel("");
    reload();
  };
  return html`<${Card} title="Set aside for later">
    <div class="stack">
      ${
        reserves.length
          ? html`<${Table} caption="Parts of the budget that no plan may use" rows=${reserves} rowKey=${([name]) => name} columns=${[
              { key: "label", title: "For", head: true, cell: ([name]) => name },
              { key: "epsilon", title: "ε", right: true, cell: ([, one]) => privacy(one.epsilon) },
              { key: "delta", title: "δ", right: true, cell: ([, one]) => privacy(one.delta) },
            ]} />`
          : html`<p class="muted">Nothing is set aside. A part kept back, say for next year's wave, cannot be spent by accident.</p>`
      }
      <${AmountForm} id="reserve" title="Set something aside" button="Set it aside" start=${{ epsilon: null, delta: 0 }} zero save=${save}
        check=${() => !/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/.test(label.trim()) && { id: "reserve-label", text: "Say what it is for: letters, digits, spaces, dots and dashes." }}
        naming=${(problemAt) => html`<${TextField} id="reserve-label" label="For what?" hint="Example: next wave. Use the same name to change it; 0 frees it." value=${label} onValue=${setLabel} maxlength="64" autocomplete="off" error=${problemAt("reserve-label")} />`} />
    </div>
  <//>`;
}
