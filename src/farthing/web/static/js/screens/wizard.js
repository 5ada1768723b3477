// The wizard: from a file to a protected dataset, one question at a time.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button, LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorSummary } from "../components/error.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Steps } from "../components/progress.js";
import { go, link } from "../router.js";
import { useAction } from "../server_data.js";
import { BudgetStep } from "../wizard/budget_step.js";
import { CheckStep } from "../wizard/check_step.js";
import { ColumnsStep } from "../wizard/columns_step.js";
import { bodiesOf, EMPTY, missing, storeDraft, storedDraft } from "../wizard/declaration_draft.js";
import { FileStep } from "../wizard/file_step.js";
import { LinksStep } from "../wizard/links_step.js";
import { UnitStep } from "../wizard/unit_step.js";

const STEPS = [
  ["File", "Which file is it?", FileStep],
  ["Person", "Whom does it protect?", UnitStep],
  ["Columns", "What can the columns hold?", ColumnsStep],
  ["Budget", "How much may be revealed?", BudgetStep],
  ["Check", "Is this right?", CheckStep],
];
const LAST = STEPS.length - 1;

/** The first step in which something is missing: nobody gets beyond it by the address. */
const reachOf = (draft) => {
  const at = STEPS.findIndex((_, step) => missing(draft, step).length > 0);
  return at < 0 ? LAST : at;
};
const addressOf = (step) => `#/wizard?step=${step + 1}`;

export default function Wizard({ me, search }) {
  const [draft, setDraft] = useState(storedDraft);
  const [attempt, setAttempt] = useState(0);
  const [checked, setChecked] = useState(false);
  const [done, setDone] = useState(null);
  const heading = useRef(null);
  const moved = useRef(false);
  useEffect(() => {
    if (!done) storeDraft(draft);
  }, [draft, done]);
  useEffect(() => {
    if (moved.current) heading.current?.focus();
    moved.current = true;
  }, [draft.step, done]);

  const [register, busy, refusal, forgive] = useAction(async () => {
    // The same again changes nothing, so that whoever was interrupted presses the button once more.
    const bodies = bodiesOf(draft);
    for (const body of bodies) await post("/datasets", body);
    storeDraft(null);
    setDone(bodies.map(({ name }) => name));
  });
  const to = (step) => {
    setAttempt(0);
    forgive();
    setDraft((old) => ({ ...old, step }));
    if (search.step !== String(step + 1)) go(addressOf(step)); // the browser's Back is the wizard's
  };
  useEffect(() => {
    const addressed = STEPS.findIndex((_, step) => String(step + 1) === search.step);
    const step = Math.min(addressed < 0 ? draft.step : addressed, reachOf(draft));
    if (step !== addressed) go(addressOf(step), { replace: true });
    if (step !== draft.step) to(step);
  }, [search.step]);
  const problems = attempt > 0 ? missing(draft, draft.step) : [];
  const problemAt = (id) => problems.find((one) => one.id === id)?.text;
  const next = (event) => {
    event.preventDefault();
    if (draft.step === LAST) {
      if (checked) register();
    } else if (missing(draft, draft.step).length) {
      setAttempt(attempt + 1);
    } else {
      to(draft.step + 1);
    }
  };
  if (me.role !== "curator") {
    return html`<${Page} title="Declare a dataset"><${Notice} tone="warn"><p>Only a curator can declare a dataset. Your role is ${me.role}.</p><//><//>`;
  }
  if (done)
    return html`<${Done} names=${done} heading=${heading} again=${() => {
      setDone(null);
      setDraft(EMPTY);
      go(addressOf(0));
    }} />`;
  const [, question, Plain] = STEPS[draft.step];
  const Step = draft.linked && Plain === UnitStep ? LinksStep : Plain;
  return html`<${Page} title="Declare a dataset" lead="Say once what is public about a file. From then on farthing guards it; no row is read for this.">
    <${Steps} steps=${STEPS.map(([short]) => short)} current=${draft.step} onStep=${to} />
    <form onSubmit=${next} novalidate>
      <${Card} class="wizard">
        <h2 ref=${heading} tabindex="-1">${question}</h2>
        <div class="stack">
          <${ErrorSummary} problems=${problems} attempt=${attempt} />
          <${Step} draft=${draft} change=${setDraft} problemAt=${problemAt} refusal=${refusal} onChecked=${setChecked} to=${to} />
        </div>
        <div class="row spread wizard-actions">
          ${draft.step > 0 ? html`<${Button} onClick=${() => to(draft.step - 1)}>Back<//>` : html`<${LinkButton} href="#/">Cancel<//>`}
          <${Button} kind="primary" type="submit" busy=${busy} disabled=${draft.step === LAST && !checked}>${draft.step < LAST ? "Next" : draft.linked ? "Declare these datasets" : "Declare this dataset"}<//>
        </div>
      <//>
    </form>
  <//>`;
}

function Done({ names, heading, again }) {
  const [name] = names;
  if (names.length > 1)
    return html`<${Page} title=${`${names.length} datasets are declared`} lead="They hold the same people, so one budget in the ledger pays for all of them; nothing has been spent.">
      <${Card}>
        <h2 ref=${heading} tabindex="-1">What do you want to ask about?</h2>
        <ul class="plain stack">${names.map((one) => html`<li key=${one} class="row"><${LinkButton} kind="primary" href=${link("plan", one)}>Plan a release of ${one}<//><${LinkButton} href=${link("dataset", one)}>About ${one}<//></li>`)}</ul>
        <div class="row"><${Button} kind="quiet" onClick=${again}>Declare another<//></div>
      <//>
    <//>`;
  return html`<${Page} title=${`${name} is declared`} lead="Its budget is in the ledger; nothing has been spent.">
    <${Card}>
      <h2 ref=${heading} tabindex="-1">What now?</h2>
      <ul>
        <li><strong>Plan a release</strong>: choose statistics and see their errors before anything is spent.</li>
        <li><strong>Grant a part of the budget</strong> to an analyst, under About.</li>
      </ul>
      <div class="row">
        <${LinkButton} kind="primary" href=${link("plan", name)}>Plan a release<//>
        <${LinkButton} href=${link("dataset", name)}>About ${name}<//>
        <${Button} kind="quiet" onClick=${again}>Declare another<//>
      </div>
    <//>
  <//>`;
}
