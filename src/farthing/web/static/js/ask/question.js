// The question field: one condition, a caret under the character that cannot be read, and the answer as a sentence.

import { html, useRef, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Fault } from "../components/expression_error.js";
import { Notice } from "../components/notice.js";
import { count } from "../format.js";
import { useAction } from "../server_data.js";
import { giveOrTake, joinedBy } from "./column_cells.js";
import { Builder } from "./condition_builder.js";

/** `answered(answer)` and `ended(error)` tell the screen; `text`, `setText` are the question as it stands. */
export function QuestionCard({ session, schema, text, setText, answered, ended }) {
  const field = useRef(null);
  const [answer, setAnswer] = useState(null);
  const [ask, busy, error, clear] = useAction(async (question) => {
    try {
      const result = await post(`/sessions/${encodeURIComponent(session.id)}/ask`, { question });
      setAnswer(result);
      answered(result);
    } catch (refusal) {
      setAnswer(null);
      if (refusal.code === "session_ended") ended(refusal);
      throw refusal;
    }
  });
  const write = (next) => {
    setText(next);
    clear();
    field.current?.focus();
  };
  const send = (event) => {
    event.preventDefault();
    if (text.trim()) ask(text.trim());
  };
  const unreadable = error?.code === "invalid_expression";
  return html`
    <${Card} title="How many rows are there, where …">
      <form onSubmit=${send} class="ask-form">
        <label for="ask-question" class="unseen">Condition</label>
        <textarea
          id="ask-question" class="input ask-question" rows="2" ref=${field} value=${text} spellcheck="false" autocapitalize="off"
          autocomplete="off" placeholder="a condition, such as age >= 65" maxlength="20000"
          aria-describedby=${unreadable ? "ask-fault" : "ask-hint"} aria-invalid=${unreadable ? "true" : null}
          onInput=${(event) => {
            setText(event.currentTarget.value);
            clear();
          }}
          onKeyDown=${(event) => {
            if (event.key === "Enter" && !event.shiftKey) send(event);
          }}></textarea>
        <p class="hint" id="ask-hint">Words such as <code>and</code>, <code>or</code>, <code>not</code>, <code>between 18 and 64</code>, <code>in ('a', 'b')</code>. Press Enter to ask.</p>
        <div class="row"><${Button} kind="primary" type="submit" busy=${busy} disabled=${!text.trim()}>Ask<//></div>
      </form>
      <div class="ask-said" aria-live="polite">
        ${error ? html`<${Refusal} ...${{ error, asked: text.trim(), field, session, schema }} />` : null}
        ${answer && !error ? html`<${Answer} answer=${answer} />` : null}
      </div>
      <${Builder} columns=${session.columns} empty=${!text.trim()} use=${write} add=${(word, one) => write(joinedBy(word, text, one))} />
    <//>`;
}

/** The latest answer, large. */
function Answer({ answer }) {
  return html`
    <div class="ask-answer">
      <p class="ask-number"><span class="number">${count(answer.value)}</span> <span class="number muted">${giveOrTake(answer.error)}</span></p>
      <p>${answer.sentence}</p>
      <p><${Paid} paid=${answer.paid && !answer.repeated} error=${answer.error} /> <code>${answer.question}</code></p>
    </div>`;
}

/** Whether an answer used something up. */
export function Paid({ paid, error }) {
  if (error === null || error === undefined)
    return html`<span class="badge warn">an estimate, without a promise</span>`;
  return paid ? html`<span class="badge accent">used one update</span>` : html`<span class="badge good">free</span>`;
}

function Refusal({ error, asked, field, session, schema }) {
  if (error.code === "invalid_expression")
    return html`<${Fault} id="ask-fault" title="This condition cannot be asked; nothing was used up" error=${error} asked=${asked} field=${field} more=${leftOut(error, session, schema)} />`;
  if (error.code === "session_ended") return html`<${NoUpdateLeft} estimate=${error.fields.estimate} />`;
  return html`<${ErrorBox} error=${error} />`;
}

/** A column that the dataset has and this session does not: that is another matter than a slip of the pen. */
function leftOut(error, session, schema) {
  const name = error.fields.column;
  if (!schema.some((one) => one.name === name) || session.columns.some((one) => one.name === name)) return null;
  return `${name} is a column of ${session.dataset}, but this session was opened without it. Ask about the columns below, or open another session with ${name}.`;
}

/** The session has ended: at most a guess is left, and it is told to be one. */
function NoUpdateLeft({ estimate }) {
  const guess =
    typeof estimate === "number"
      ? `An estimate from the paid answers is ${count(estimate)} rows, without a promise.`
      : "";
  return html`<${Notice} tone="warn" title="Refused: no update is left for a new question"><p>${guess} Nothing was spent.</p><//>`;
}
