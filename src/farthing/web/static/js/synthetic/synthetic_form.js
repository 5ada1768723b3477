// The form that prices a synthetic table and makes it: first what is measured and what it costs, then the question.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { CheckField, NumberField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { charged, plural, privacy } from "../format.js";
import { Warnings } from "../planner/warnings.js";
import { AskCurator } from "../requests/ask_curator.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";

function missing(words, asks) {
  return [
    !words.columns.length && { id: "synthetic-columns", text: "Choose at least one column." },
    (asks || words.epsilon !== null) &&
      !(words.epsilon > 0) && {
        id: "synthetic-epsilon",
        text: asks
          ? "Say what you ask the curator for: a number above 0."
          : "Epsilon is a number above 0, or empty for all that is left.",
      },
  ].filter(Boolean);
}

export function SyntheticForm({ about, me }) {
  const none = me.role === "analyst" && (about.budget.exhausted || !(about.budget.remaining.epsilon > 0));
  const [asks, setAsks] = useState(none); // a curator
  const names = about.schema.map(({ name }) => name);
  const [words, setWords] = useState({ columns: names, lacks: true, epsilon: null });
  const [plan, setPlan] = useState(null);
  const [asking, setAsking] = useState(false);
  const { attempt, checked } = useAttempts();
  const set = (part) => {
    setPlan(null);
    setWords((old) => ({ ...old, ...part }));
  };
  const body = {
    dataset: about.name,
    columns: words.columns,
    missing: words.lacks,
    ...(words.epsilon === null ? {} : { epsilon: words.epsilon }),
  };
  const [look, looking, unplanned] = useAction(async () =>
    setPlan(await post("/synthetic-tables/price", asks ? { ...body, on_request: true } : body)),
  );
  const [make, making, refusal] = useAction(async () => {
    // Named after what is asked for: a second click, or a script, finds the same table.
    const view = await post("/synthetic-tables", {
      ...body,
      request_id: plan.request_id,
      confirmed_epsilon: plan.epsilon,
      wait: 1,
    });
    setAsking(false);
    go(link("synthetic", about.name, view.id));
  });
  const { problems, problemAt, submit } = checked(missing(words, asks), look);
  const choose = (name, chosen) =>
    set({ columns: names.filter((one) => (one === name ? chosen : words.columns.includes(one))) });
  const unchosen = problemAt("synthetic-columns");
  return html`<${Card} title="Plan a synthetic table">
    <div class="stack">
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <fieldset id="synthetic-columns" tabindex="-1">
        <legend>Columns</legend>
        <p class="hint">Fewer columns make a better table for the same price.</p>
        ${unchosen ? html`<p class="field-error">${unchosen}</p>` : null}
        <div class="choices">${names.map((name) => html`<${CheckField} key=${name} label=${name} checked=${words.columns.includes(name)} onValue=${(chosen) => choose(name, chosen)} />`)}</div>
      </fieldset>
      <${CheckField} label="Values may be missing" hint="If not, rows with a missing value are left out." checked=${words.lacks} onValue=${(lacks) => set({ lacks })} />
      ${
        me.role === "analyst" && !none
          ? html`<${CheckField} label="Ask a curator for more than my grant" checked=${asks} onValue=${(value) => {
              setPlan(null);
              setAsks(value);
            }} />`
          : null
      }
      ${none ? html`<p>Nothing is left of your grant: a curator can allow you this table.</p>` : null}
      <${NumberField} id="synthetic-epsilon" label="What the table may cost (ε)" optional=${!asks} hint=${asks ? "The curator decides." : "Empty for all that is left."} value=${words.epsilon} onValue=${(epsilon) => set({ epsilon })} error=${problemAt("synthetic-epsilon")} />
      <${ErrorBox} error=${unplanned} />
      <div><${Button} type="submit" kind=${plan ? "" : "primary"} busy=${looking}>Show the price<//></div>
    </form>
    ${looking && html`<${Loading} label="Working out the price" lines=${3} />`}
    ${
      plan &&
      html`<div class="stack" id="synthetic-plan" aria-live="polite">
      <p><strong>${plan.made ? "Made before: it costs nothing." : `It costs ${charged(plan.epsilon)}${plan.delta > 0 ? ` and δ ${privacy(plan.delta)}` : ""}, once.`}</strong> How good it is can be said when it is made.</p>
      <ul>${plan.sentences.map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}</ul>
      <${Warnings} lines=${plan.warnings} />
      <${ErrorBox} error=${refusal} />
      <div>${
        plan.made
          ? html`<${Button} kind="primary" busy=${making} onClick=${make}>Open it<//>`
          : html`<${Button} kind="primary" onClick=${() => setAsking(true)}>${asks ? "Ask a curator …" : "Make it …"}<//>`
      }</div>
    </div>`
    }
    </div>
    ${asks && asking && plan ? html`<${AskCurator} heading="Ask a curator to allow this table?" what=${`A synthetic table of ${about.name} with ${plural(plan.columns.length, "column")}. Nothing is spent: once it is approved, you make it, once.`} cost=${plan.epsilon} body=${{ table: body }} onClose=${() => setAsking(false)} />` : null}
    <${ConfirmDialog} open=${asking && !asks} title="Make this table?" confirm=${plan ? `Make it and spend ${charged(plan.epsilon)}` : ""} busy=${making} onConfirm=${make} onClose=${() => setAsking(false)}>
      <p>A table of ${plan ? plural(plan.columns.length, "column") : ""}, with a verdict on each column and each pair. Any number of rows of it is free afterwards.</p>
      <p><strong>This cannot be undone.</strong></p>
    <//>
  <//>`;
}
