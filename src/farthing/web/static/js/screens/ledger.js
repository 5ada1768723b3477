// The screen "Ledger": what was spent, by whom, in order, and the proof that nothing was altered.

import { html } from "../../vendor/preact.js";
import { address } from "../api.js";
import { LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { SelectField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Page } from "../components/page.js";
import { BurnDownCard } from "../ledger/burn_down_card.js";
import { EntriesCard } from "../ledger/entries.js";
import { ReleasesCard } from "../ledger/releases_card.js";
import { VerifyCard } from "../ledger/verify.js";
import { go, link } from "../router.js";
import { useLoaded } from "../server_data.js";

export default function Screen({ params, me }) {
  const { data: summary, error, reload } = useLoaded("/ledger");
  const { dataset } = params;
  const own = me.role === "analyst";
  const lead = own
    ? "Everything you have asked for and spent, in order. Nothing is ever removed."
    : "Every budget, charge, refusal and release, in order. Nothing is ever removed, and a change would show.";
  return html`
    <${Page} title=${dataset ? `Ledger of ${dataset}` : "Ledger"} lead=${lead}>
      <${ErrorBox} error=${error} onRetry=${reload} />
      ${!summary && !error ? html`<${Loading} lines=${6} />` : null}
      ${
        summary
          ? html`
        <${Choice} names=${namesOf(summary)} dataset=${dataset} />
        ${dataset ? html`<${BurnDownCard} dataset=${dataset} own=${own} />` : null}
        <${ReleasesCard} dataset=${dataset} />
        <${VerifyCard} summary=${summary} actions=${own ? null : html`<${LinkButton} small href=${address("/ledger/export")} download="ledger.jsonl">Export all entries<//>`} />
        <${EntriesCard} dataset=${dataset} />`
          : null
      }
    <//>`;
}

function namesOf(summary) {
  return (summary.datasets ?? []).map((one) => (typeof one === "string" ? one : one.name));
}

function Choice({ names, dataset }) {
  if (names.length === 0) return null;
  // A dataset whose account has another name is not among them.
  const known = dataset && !names.includes(dataset) ? [dataset, ...names] : names;
  const options = [["", "all datasets"], ...known.map((name) => [name, name])];
  return html`
    <${Card}>
      <${SelectField} label="Dataset" value=${dataset ?? ""} options=${options}
        hint=${dataset ? null : "Choose one to see how its budget is used up."}
        onValue=${(name) => go(name ? link("ledger", name) : link("ledger"))} />
    <//>`;
}
