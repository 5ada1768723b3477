// Opening a session in plain words: how exact, how many questions, about which columns, for which price.

import { html, useEffect, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { CheckField, NumberField, SelectField, SliderField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { count, epsilon, percent, privacy } from "../format.js";
import { useNewest } from "../learn/latest_answer.js";
import { Stops } from "../learn/stop_slider.js";
import { confirm, forget, requestFor } from "../release/request_ids.js";
import { AskCurator } from "../requests/ask_curator.js";
import { go, link } from "../router.js";
import { knownRows, rememberRows } from "../row_estimates.js";
import { useAction } from "../server_data.js";
import { cellsOf, firstBins, firstChoice, MOST_CELLS } from "./column_cells.js";
import { ColumnChoice } from "./column_choice.js";
import { closestOf, Quote, twoDigits } from "./quote.js";

const ALPHAS = [0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001];
const QUESTIONS = [
  ["100", "100"],
  ["1000", "1,000"],
  ["10000", "10,000"],
  ["100000", "100,000"],
];
const ROUGHEST = 0.3; // alpha that is proposed
const PAUSE = 350; // milliseconds at rest before a price is asked for: planning takes a moment

const FIRST_REQUEST = 0.1; // epsilon that is proposed where a curator decides

/** With `mayAsk` a curator can be asked for more than is left, and must be where nothing is. */
export function OpenForm({ dataset, mayAsk }) {
  const left = dataset.budget.remaining.epsilon;
  const none = dataset.budget.exhausted || !(left > 0);
  const [asks, setAsks] = useState(none);
  const [form, setForm] = useState(() => ({
    alpha: 0.05,
    sure: false,
    queries: "1000",
    epsilon: none ? FIRST_REQUEST : left / 2,
    rows: dataset.rows ? null : knownRows(dataset.name),
    chosen: firstChoice(dataset.schema),
    bins: firstBins(dataset.schema),
  }));
  const [asking, setAsking] = useState(false);
  const [touched, setTouched] = useState(false);
  const change = (part) => setForm((before) => ({ ...before, ...part }));
  const columns = dataset.schema.filter((column) => form.chosen.includes(column.name));
  const cells = columns.reduce((product, column) => product * cellsOf(column, form.bins[column.name]), 1);
  const problem = problemOf(columns, form, cells) ?? (asks ? unasked(dataset, form) : null);
  const body = problem ? null : bodyOf(dataset, form, columns);
  const quote = useNewest(
    (query) => post("/sessions/price", query),
    body && (asks ? { ...body, on_request: true } : body),
    PAUSE,
  );
  // Nobody has said yet how exact: begin with what can be kept, and lasts.
  useEffect(() => {
    const next = touched || form.sure || quote.busy ? null : easier(form.alpha, quote);
    if (next !== null) change({ alpha: next });
  }, [quote.busy, quote.error, quote.value]);
  const fresh = body !== null && !quote.busy && !quote.error && quote.value !== null;

  const price = quote.value && !quote.value.rows_are_a_guess ? quote.value.epsilon : form.epsilon; // counting rows is paid from it, too

  const [open, busy, refusal] = useAction(async () => {
    const query = { ask: body };
    const request = requestFor(query);
    confirm(request.id);
    try {
      const session = await post("/sessions", { ...body, request_id: request.id, confirmed_epsilon: form.epsilon });
      forget(request.id); // it exists: a second request for the same means another one
      go(link("ask", dataset.name, session.id));
    } catch (error) {
      setAsking(false);
      if (error.status >= 400 && error.status < 500) forget(request.id); // refused: nothing was spent under this id
      throw error;
    }
  });
  return html`
    <${Card} title="Open a query session">
      <div class="ask-open">
        <div class="stack">
          <${CheckField} label="Answer every question, whatever I ask" checked=${form.sure} onValue=${(sure) => change({ sure })}
            hint="Then nothing can use up the updates early, and answers are as accurate as that allows." />
          ${
            form.sure
              ? null
              : html`<${Stops} name="alpha" label="How accurate?" stops=${ALPHAS} value=${form.alpha}
            text=${(alpha) => exactness(alpha, dataset.rows ?? form.rows)} ends=${["← rougher, lasts longer", "more accurate, ends sooner →"]}
            hint="Every answer of the session is at most this far off, for all questions together."
            change=${(alpha) => {
              setTouched(true);
              change({ alpha });
            }} />`
          }
          ${mayAsk && !none ? html`<${CheckField} label="Ask a curator for more than my grant" checked=${asks} onValue=${setAsks} />` : null}
          ${mayAsk && none ? html`<p>Nothing is left of your grant: a curator can allow you this session.</p>` : null}
          ${
            asks
              ? html`<${NumberField} label="What may it cost?" value=${form.epsilon} onValue=${(value) => change({ epsilon: value })} unit="ε" hint="Paid once, when the session is opened. The curator decides." />`
              : html`<${SliderField} label="What may it cost?" min=${left / 100} max=${left} value=${Math.min(form.epsilon, left)} step=${left / 100}
            valueText=${`${epsilon(form.epsilon)} of ${privacy(left)} left`}
            hint="Paid once, when the session is opened. More privacy for people means rougher answers for you."
            onValue=${(value) => change({ epsilon: value })} />`
          }
          <${SelectField} label="How many questions?" value=${form.queries} options=${QUESTIONS} onValue=${(queries) => change({ queries })}
            hint="Different questions the promise must hold for. Asking again what was asked costs nothing." />
          ${
            dataset.rows
              ? null
              : html`
            <${NumberField} label="About how many rows are there?" optional value=${form.rows} onValue=${(rows) => {
              change({ rows });
              rememberRows(dataset.name, rows === null ? null : Math.round(rows));
            }} unit="rows"
              hint="An estimate from elsewhere. Without one they are counted first, for a hundredth of the price." />`
          }
          <${ColumnChoice} schema=${dataset.schema} form=${form} change=${change} cells=${cells} problem=${problem} />
        </div>
        <div class="ask-price">
          <${Quote} quote=${body === null ? null : quote.value} busy=${quote.busy && body !== null} error=${body === null ? null : quote.error}
            again=${quote.again} budget=${asks ? null : dataset.budget} raise=${(alpha) => {
              setTouched(true);
              change({ alpha, sure: false });
            }} />
          <${ErrorBox} error=${refusal} />
          <${Button} kind="primary" disabled=${!fresh} onClick=${() => setAsking(true)}>${asks ? "Ask a curator …" : "Open the session …"}<//>
          <p class="hint">Nothing is spent before you confirm.</p>
        </div>
      </div>
      ${asks && asking ? html`<${AskCurator} heading="Ask a curator to allow this session?" what=${`${quote.value?.promise} Nothing is spent: once it is approved, you open it, once.`} cost=${price} body=${{ session: body }} onClose=${() => setAsking(false)} />` : null}
      <${ConfirmDialog} open=${asking && !asks} title="Open this session?" confirm=${`Spend ${epsilon(price)}`} busy=${busy}
        onConfirm=${open} onClose=${() => setAsking(false)}>
        <p>${quote.value?.promise}</p>
        <p><strong>${epsilon(price)}</strong> of ${privacy(left)} left for ${dataset.name} will be spent, at once and for good.
          About ${privacy(Math.max(0, left - price))} will be left. This cannot be undone.</p>
        ${quote.value?.caution ? html`<${Notice} tone="warn" title="Caution"><p>${quote.value.caution}</p><//>` : null}
      <//>
    <//>`;
}

/** A rougher alpha where the present one cannot be kept or would soon use up its updates; null where it is well. */
function easier(alpha, { error, value }) {
  const closest = closestOf(error);
  if (closest !== null) return closest < alpha ? null : Math.min(ROUGHEST, twoDigits(1.5 * closest));
  return !error && value?.caution && alpha < ROUGHEST ? Math.min(ROUGHEST, twoDigits(1.5 * alpha)) : null;
}

function exactness(alpha, rows) {
  const share = `within ${percent(100 * alpha)}`;
  return rows ? `${share}: ±${count(alpha * rows)} rows` : `${share} of the rows`;
}

function problemOf(columns, form, cells) {
  if (columns.length === 0) return "Choose at least one column.";
  if (cells > MOST_CELLS)
    return `${count(cells)} combinations are too many (at most ${count(MOST_CELLS)}): choose fewer columns, or cut them into fewer parts.`;
  if (columns.some((column) => form.bins[column.name] === null)) return "Say into how many parts a column is cut.";
  if (form.rows !== null && !(form.rows >= 1)) return "The number of rows must be at least 1.";
  return null;
}

function unasked(dataset, form) {
  if (!dataset.rows && form.rows === null)
    return "Say about how many rows there are: a curator approves a fixed promise.";
  return form.epsilon > 0 ? null : "Say what it may cost.";
}

function bodyOf(dataset, form, columns) {
  const bins = Object.fromEntries(
    columns.filter((column) => form.bins[column.name]).map((column) => [column.name, form.bins[column.name]]),
  );
  return {
    dataset: dataset.name,
    alpha: form.sure ? "guaranteed" : form.alpha,
    queries: Number(form.queries),
    epsilon: form.epsilon,
    columns: columns.map((column) => column.name),
    ...(Object.keys(bins).length ? { bins } : {}),
    ...(form.rows !== null ? { rows: Math.round(form.rows) } : {}),
  };
}
