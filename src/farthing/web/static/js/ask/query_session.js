// One session: what is left of it, the question field, and what was answered so far.

import { html, useEffect, useState } from "../../vendor/preact.js";
import { LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Progress } from "../components/progress.js";
import { Table } from "../components/table.js";
import { count, epsilon, plural } from "../format.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";
import { giveOrTake } from "./column_cells.js";
import { Paid, QuestionCard } from "./question.js";

const WAITING = ["queued", "running"];
const EVERY = 700; // milliseconds between two looks at a session that is being opened

export function SessionScreen({ dataset, id }) {
  const { data: session, error, reload, setData } = useLoaded(`/sessions/${encodeURIComponent(id)}`);
  const about = useLoaded(`/datasets/${encodeURIComponent(dataset)}`).data;
  const budget = about?.budget;
  const [text, setText] = useState("");
  const [end, setEnd] = useState(null);
  const waiting = session !== null && WAITING.includes(session.state);
  useEffect(() => {
    if (!waiting) return undefined;
    const timer = setTimeout(reload, EVERY);
    return () => clearTimeout(timer);
  }, [session]);

  const title = `Ask about ${dataset}`;
  const back = html`<${LinkButton} small href=${link("ask", dataset)}>All sessions<//>`;
  if (error) return html`<${Page} title=${title} actions=${back}><${ErrorBox} error=${error} onRetry=${reload} /><//>`;
  if (!session)
    return html`<${Page} title=${title} actions=${back}><${Loading} label="Resuming the session" lines=${6} /><//>`;
  if (waiting) return html`<${Page} title=${title} actions=${back}><${Opening} session=${session} /><//>`;
  if (session.state !== "released")
    return html`<${Page} title=${title} actions=${back}><${NotOpened} session=${session} dataset=${dataset} /><//>`;

  const answered = (answer) =>
    setData({
      ...session,
      updates_left: answer.updates_left,
      questions_left: answer.questions_left,
      history: withAnswer(session.history, answer),
    });
  const over = end !== null || session.updates_left === 0;
  return html`
    <${Page} title=${title} lead="Each question asks how many rows meet a condition. The session is paid for: asking costs nothing more." actions=${back}>
      <${Left} session=${session} budget=${budget} />
      ${over ? html`<${Ended} session=${session} error=${end} dataset=${dataset} again=${setText} />` : null}
      <${QuestionCard} ...${{ session, schema: about?.schema ?? [], text, setText, answered, ended: setEnd }} />
      <${History} history=${session.history} again=${setText} />
    <//>`;
}

/** The same question asked again is the same answer, and stands in the history once. */
function withAnswer(history, answer) {
  const { number, question, value, error, paid, sentence } = answer;
  if (history.some((one) => one.number === number)) return history;
  return [...history, { number, question, value, error, paid, sentence }];
}

function Left({ session, budget }) {
  const { plan } = session;
  return html`
    <${Card} title="What is left" class="ask-left">
      <dl class="ask-stats">
        <${Stat} name="updates left" value=${session.updates_left} of=${plan.updates}
          hint="A surprising answer uses one up. When none is left, new questions are refused." />
        <${Stat} name="questions the promise covers" value=${session.questions_left} of=${plan.queries}
          hint="More may be asked; paid answers are then a little less accurate." />
        <div class="ask-stat">
          <dt>spent on this session</dt>
          <dd><span class="number strong">${epsilon(plan.epsilon)}</span><p class="hint">Paid once, when it was opened.</p></dd>
        </div>
        <div class="ask-stat">
          <dt>left in your budget</dt>
          <dd><span class="number strong">${!budget ? "—" : budget.exhausted ? "nothing" : epsilon(budget.remaining.epsilon)}</span><p class="hint">For other sessions and releases. Asking here takes nothing from it.</p></dd>
        </div>
      </dl>
      <p>${plan.promise}</p>
    <//>`;
}

function Stat({ name, value, of, hint }) {
  return html`
    <div class="ask-stat">
      <dt>${name}</dt>
      <dd>
        <span class="number strong" data-stat=${name}>${count(value)}</span> <span class="muted number">of ${count(of)}</span>
        <meter min="0" max=${of} value=${value} aria-label=${name}>${count(value)} of ${count(of)}</meter>
        <p class="hint">${hint}</p>
      </dd>
    </div>`;
}

function Opening({ session }) {
  const words = session.state === "queued" ? "Waiting for its turn" : "Opening the session";
  return html`
    <${Card} title="The session is being opened">
      <${Progress} value=${session.state === "queued" ? null : session.progress} label=${words} />
      <p class="hint">It is charged once, however often this page is loaded. You may leave and come back.</p>
    <//>`;
}

const WHY = {
  refused: "The session was not opened, and nothing was spent.",
  failed: "The session was not opened.",
  forfeited: "The session was paid for and then lost while it was being opened. The charge stays: noise is drawn once.",
};

function NotOpened({ session, dataset }) {
  return html`
    <${ErrorBox} error=${session.error} title=${WHY[session.state] || "The session cannot be used."} />
    ${session.error ? null : html`<${Notice} tone="bad" title=${WHY[session.state] || "The session cannot be used."} />`}
    <p><${LinkButton} href=${link("ask", dataset)}>Open another one<//></p>`;
}

/** All updates are used up: what was answered can be asked again, nothing else. */
function Ended({ session, error, dataset, again }) {
  const known = [...new Set([...(error?.fields.answered ?? []), ...session.history.map((one) => one.question)])];
  return html`
    <${Notice} tone="warn" live title="The updates of this session are used up">
      <p>New questions are refused from here on. Nothing more was or will be charged for this session.</p>
      ${
        known.length
          ? html`
        <p>${known.length === 1 ? "This question can still be asked; its answer stays as it is:" : `These ${count(known.length)} questions can still be asked; their answers stay as they are:`}</p>
        <div class="ask-chips">
          ${known.slice(-12).map(
            (question) => html`
            <button type="button" class="ask-chip" key=${question} onClick=${() => again(question)}><code>${question}</code></button>`,
          )}
        </div>`
          : null
      }
      <p class="ask-next">For other questions <a href=${link("ask", dataset)}>open another session</a>, which is charged again, or <a href=${link("plan", dataset)}>plan a release</a>.</p>
    <//>`;
}

function History({ history, again }) {
  if (history.length === 0) return null;
  const columns = [
    { key: "number", title: "No.", right: true },
    {
      key: "question",
      title: "Question",
      head: true,
      cell: (row) =>
        html`<button type="button" class="ask-again" onClick=${() => again(row.question)} title="Put it into the field"><code>${row.question}</code></button>`,
    },
    { key: "value", title: "Rows", right: true, cell: (row) => count(row.value) },
    { key: "error", title: "Give or take", right: true, cell: (row) => giveOrTake(row.error) },
    { key: "paid", title: "Price", cell: (row) => html`<${Paid} paid=${row.paid} error=${row.error} />` },
  ];
  return html`
    <${Card} title="Asked so far">
      <${Table} caption=${`${plural(history.length, "answer")}, the newest first`} columns=${columns} rows=${[...history].reverse()} rowKey=${(row) => row.number} />
    <//>`;
}
