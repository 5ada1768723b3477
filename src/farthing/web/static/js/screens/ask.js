// The screen "Ask": sessions in which many questions are answered for one price.

import { html } from "../../vendor/preact.js";
import { query } from "../api.js";
import { SessionScreen } from "../ask/query_session.js";
import { OpenForm } from "../ask/session_form.js";
import { LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { count, epsilon, plural, privacy } from "../format.js";
import { may } from "../login_session.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

const LEAD =
  "Ask how many rows meet a condition, as often as you like. One price is paid when a query session is opened; every answer is then within a promised error.";

export default function Screen({ params, me }) {
  if (!params.dataset) return html`<${Choose} />`;
  if (params.id) return html`<${SessionScreen} dataset=${params.dataset} id=${params.id} />`;
  return html`<${Sessions} name=${params.dataset} me=${me} />`;
}

function Choose() {
  const { data, error, reload } = useLoaded("/datasets");
  return html`
    <${Page} title="Ask" lead=${LEAD}>
      <${ErrorBox} error=${error} onRetry=${reload} />
      ${data ? html`<ul>${data.datasets.map((one) => html`<li key=${one.name}><a href=${link("ask", one.name)}>${one.name}</a></li>`)}</ul>` : null}
      ${data && data.datasets.length === 0 ? html`<${Empty} title="Nothing to ask about yet">A curator has to declare a dataset and grant you a part of its budget.<//>` : null}
    <//>`;
}

function Sessions({ name, me }) {
  const dataset = useLoaded(`/datasets/${encodeURIComponent(name)}`);
  const sessions = useLoaded(`/sessions${query({ dataset: name })}`);
  const own = sessions.data?.sessions ?? [];
  return html`
    <${Page} title=${`Ask about ${name}`} lead=${LEAD}>
      <${ErrorBox} error=${dataset.error} onRetry=${dataset.reload} />
      <${ErrorBox} error=${sessions.error} onRetry=${sessions.reload} />
      ${own.length ? html`<${Own} sessions=${own} dataset=${name} />` : null}
      ${dataset.data ? html`<${Opening} dataset=${dataset.data} me=${me} some=${own.length > 0} />` : dataset.error ? null : html`<${Loading} lines=${8} />`}
    <//>`;
}

function Opening({ dataset, me, some }) {
  if (!may(me, "spend")) {
    return html`<${Notice} title="Reading only"><p>Your role cannot ask questions: they spend budget. <a href=${link("ledger", dataset.name)}>The ledger</a> shows which sessions there are and what they cost.</p><//>`;
  }
  const { exhausted, remaining, total } = dataset.budget;
  const mayAsk = me.role === "analyst"; // a curator, for more than the grant
  const form = html`<${OpenForm} dataset=${dataset} mayAsk=${mayAsk} />`;
  if (!exhausted && remaining.epsilon > 0) return form;
  if (mayAsk && !(total.epsilon > 0)) return form;
  return html`
    <${Notice} tone="warn" title="The budget is used up">
      <p>All of ${epsilon(total.epsilon)} is spent or set aside${mayAsk ? "." : ", so that no new session can be opened."}
        ${some ? " The sessions above are paid for: go on asking in them." : ""}</p>
      <p>${mayAsk ? "A curator can allow you another session, or grant more." : html`A curator may <a href=${link("dataset", dataset.name)}>raise the budget</a>; people in the data then have less privacy.`}
        ${" "}What was released before can be read at no cost.</p>
    <//>
    ${mayAsk ? form : null}`;
}

const STATES = {
  queued: "waiting to be opened",
  running: "being opened",
  refused: "refused, nothing spent",
  failed: "not opened",
  forfeited: "lost; the charge stays",
};

function Own({ sessions, dataset }) {
  return html`
    <${Card} title="Open sessions">
      <ul class="ask-sessions">
        ${sessions.map(
          (one) => html`
          <li key=${one.id}>
            <div>
              <strong>${one.plan ? `${plural(one.plan.queries, "question")} for ${epsilon(one.plan.epsilon)}` : one.id}</strong>
              <p class="hint">${one.state === "released" ? `${count(one.updates_left)} of ${privacy(one.plan?.updates)} updates left` : (STATES[one.state] ?? one.state)}</p>
            </div>
            <${LinkButton} small href=${link("ask", dataset, one.id)}>${one.state === "released" ? "Ask" : "Look"}<span class="unseen"> in session ${one.id}</span><//>
          </li>`,
        )}
      </ul>
    <//>`;
}
