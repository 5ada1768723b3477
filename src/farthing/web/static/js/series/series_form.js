// The form that plans a running series and opens it: first the errors of all periods, then the price, then the question.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { CheckField, NumberField, SelectField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { charged, privacy } from "../format.js";
import { Warnings } from "../planner/warnings.js";
import { requestFor } from "../release/request_ids.js";
import { AskCurator } from "../requests/ask_curator.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";
import { ErrorsChart } from "./errors_chart.js";

const EVERY = ["day", "week", "month", "quarter", "year"].map((one) => [one, one]);

function missing(words, asks) {
  return [
    !words.date && { id: "series-date", text: "Choose the column that dates a row." },
    !(Number.isInteger(words.steps) && words.steps >= 1 && words.steps <= 1200) && {
      id: "series-steps",
      text: "Say for how many periods: a whole number from 1 to 1,200.",
    },
    (asks || words.epsilon !== null) &&
      !(words.epsilon > 0) && {
        id: "series-epsilon",
        text: asks
          ? "Say what you ask the curator for: a number above 0."
          : "Epsilon is a number above 0, or empty for all that is left.",
      },
  ].filter(Boolean);
}

const bodyOf = (dataset, words) => ({
  dataset,
  date: words.date,
  every: words.every,
  steps: words.steps,
  append_only: words.appendOnly,
  ...(words.first.trim() ? { first: words.first.trim() } : {}),
  ...(words.by ? { by: [words.by] } : {}),
  ...(words.epsilon === null ? {} : { epsilon: words.epsilon }),
});

export function SeriesForm({ about, me }) {
  const none = me.role === "analyst" && (about.budget.exhausted || !(about.budget.remaining.epsilon > 0));
  const [asks, setAsks] = useState(none); // a curator
  const dates = about.schema.filter((one) => one.kind === "dates").map(({ name }) => [name, name]);
  const groups = about.schema.filter((one) => one.kind === "categories" || one.kind === "flags");
  const [words, setWords] = useState({
    date: dates.length === 1 ? dates[0][0] : "",
    every: "month",
    first: "",
    steps: 12,
    by: "",
    epsilon: null,
    appendOnly: false,
  });
  const [plan, setPlan] = useState(null);
  const [asking, setAsking] = useState(false);
  const { attempt, checked } = useAttempts();
  const set = (part) => {
    setPlan(null);
    setWords((old) => ({ ...old, ...part }));
  };
  const body = bodyOf(about.name, words);
  const [look, looking, unplanned] = useAction(async () =>
    setPlan(await post("/series/price", asks ? { ...body, on_request: true } : body)),
  );
  const [open, opening, refusal] = useAction(async () => {
    const { id } = requestFor({ series: body });
    const view = await post("/series", { ...body, request_id: id, confirmed_epsilon: plan.epsilon, wait: 20 });
    setAsking(false);
    go(link("series", about.name, view.id));
  });
  const { problems, problemAt, submit } = checked(missing(words, asks), look);
  if (!dates.length) {
    return html`<${Card} title="Plan a series"><p>A series needs a column of dates, and ${about.name} has none that is declared.</p><//>`;
  }
  return html`<${Card} title="Plan a series">
    <div class="stack">
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <div class="pair">
        <${SelectField} id="series-date" label="Which column dates a row?" value=${words.date} onValue=${(date) => set({ date })} options=${[["", "Choose …"], ...dates]} error=${problemAt("series-date")} />
        <${SelectField} id="series-every" label="One number for each" value=${words.every} onValue=${(every) => set({ every })} options=${EVERY} />
      </div>
      <div class="pair">
        <${TextField} id="series-first" label="First period" optional hint="Such as 2026-01, 2026-W07 or 2026-Q2; by default the first that the dates allow." value=${words.first} onValue=${(first) => set({ first })} autocomplete="off" maxlength="10" />
        <${NumberField} id="series-steps" label="For how many periods?" hint="All of them are paid for at the start." value=${words.steps} onValue=${(steps) => set({ steps })} error=${problemAt("series-steps")} />
      </div>
      ${groups.length > 0 && html`<${SelectField} id="series-by" label="One series for each" optional value=${words.by} onValue=${(by) => set({ by })} options=${[["", "no: all rows together"], ...groups.map(({ name }) => [name, name])]} />`}
      <${CheckField} id="series-append" checked=${words.appendOnly} onValue=${(appendOnly) => set({ appendOnly })} label="Rows are only ever added to this table" hint="They keep their person and their date, and none is removed. Errors are then much smaller, and the protection rests on it." />
      ${
        me.role === "analyst" && !none
          ? html`<${CheckField} label="Ask a curator for more than my grant" checked=${asks} onValue=${(value) => {
              setPlan(null);
              setAsks(value);
            }} />`
          : null
      }
      ${none ? html`<p>Nothing is left of your grant: a curator can allow you this series.</p>` : null}
      <${NumberField} id="series-epsilon" label="What all periods together may cost (ε)" optional=${!asks} hint=${asks ? "The curator decides." : "Empty for all that is left."} value=${words.epsilon} onValue=${(epsilon) => set({ epsilon })} error=${problemAt("series-epsilon")} />
      <${ErrorBox} error=${unplanned} />
      <div><${Button} type="submit" kind=${plan ? "" : "primary"} busy=${looking}>Show the errors<//></div>
    </form>
    ${looking && html`<${Loading} label="Working out the errors" lines=${3} />`}
    ${
      plan &&
      html`<div class="stack" id="series-plan" aria-live="polite">
      <${ErrorsChart} plan=${plan} />
      <ul>${plan.sentences.map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}</ul>
      <${Warnings} lines=${plan.warnings} />
      <${ErrorBox} error=${refusal} />
      <div><${Button} kind="primary" onClick=${() => setAsking(true)}>${asks ? "Ask a curator …" : "Open it …"}<//></div>
    </div>`
    }
    </div>
    ${asks && asking && plan ? html`<${AskCurator} heading="Ask a curator to allow this series?" what=${`${plan.errors.length} periods of ${about.name}, with the errors that you see now. Nothing is spent: once it is approved, you open it, once.`} cost=${plan.epsilon} body=${{ series: body }} onClose=${() => setAsking(false)} />` : null}
    <${ConfirmDialog} open=${asking && !asks} title="Open this series?" confirm=${plan ? `Open it and spend ${charged(plan.epsilon)}` : ""} busy=${opening} onConfirm=${open} onClose=${() => setAsking(false)}>
      ${
        plan &&
        html`<p>All ${plan.errors.length} periods together cost ${charged(plan.epsilon)}${plan.delta > 0 ? ` and δ ${privacy(plan.delta)}` : ""}, now and once. Each is released when it is over, for nothing more.</p>
      ${plan.append_only && html`<p>You state that rows are only added to the table: the protection rests on it.</p>`}
      <p><strong>This cannot be undone.</strong></p>`
      }
    <//>
  <//>`;
}
