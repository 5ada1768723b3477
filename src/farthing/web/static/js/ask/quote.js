// What a session would cost and promise, before anything is paid.

import { html } from "../../vendor/preact.js";
import { Button } from "../components/button.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { count, epsilon, percent, privacy } from "../format.js";

export function Quote({ quote, busy, error, again, budget, raise }) {
  return html`
    <section aria-labelledby="ask-quote" aria-busy=${busy ? "true" : "false"} class="ask-quote">
      <h3 id="ask-quote">Price and promise</h3>
      <div aria-live="polite">
        ${error ? html`<${Refused} error=${error} again=${again} raise=${raise} />` : null}
        ${!error && !quote ? (busy ? html`<${Loading} label="Working out the price" lines=${4} />` : html`<p class="hint">Fill in the form to see the price.</p>`) : null}
        ${!error && quote ? html`<${PriceAndPromise} quote=${quote} budget=${budget} />` : null}
      </div>
      <p class="hint ask-working">${busy ? "Working it out …" : "\u00a0"}</p>
    </section>`;
}

function PriceAndPromise({ quote, budget }) {
  const left = budget?.remaining.epsilon;
  return html`
    <p class="strong">${quote.promise}</p>
    <dl class="facts">
      <dt>Price</dt><dd><span class="number">${epsilon(quote.epsilon)}</span>${budget ? ` of ${privacy(left)} left (${percent((100 * quote.epsilon) / left)})` : ", if a curator allows it"}</dd>
      <dt>Updates</dt><dd>${count(quote.updates)}: this many answers may be surprises. All others are free.</dd>
      <dt>Questions</dt><dd>${count(quote.queries)}</dd>
    </dl>
    ${quote.guarantee ? html`<p>${quote.guarantee}</p>` : null}
    ${(quote.notes ?? []).map((note) => html`<p class="hint" key=${note}>${note}</p>`)}
    ${
      quote.caution
        ? html`<${Notice} tone="warn" title="This session may end early">
      <p>It promises much for its price: ${
        quote.updates <= 2
          ? `after ${quote.updates === 1 ? "one surprising answer" : "two surprising answers"}, perhaps the very first ${quote.updates === 1 ? "one" : "two"}, it answers nothing new`
          : "a few dozen questions with surprising answers may use up its updates"
      }. Rougher answers, fewer columns or wider bins last longer.</p>
      <details class="more"><summary>The planner's message</summary><p class="small">${quote.caution}</p></details>
    <//>`
        : null
    }`;
}

/** A promise that cannot be kept for this price: the nearest one that can is one press away. */
function Refused({ error, again, raise }) {
  const closest = closestOf(error);
  if (error.code === "infeasible") {
    return html`
      <${Notice} tone="bad" live title="More accurate than this price allows">
        <p>${
          closest === null
            ? "For this price, these columns and so many questions nothing useful can be promised. Let it cost more, or ask about fewer columns."
            : `For this price, these columns and so many questions, answers can be within ${percent(100 * closest)} of the rows at best. Make them rougher, let it cost more, or ask about fewer columns.`
        }</p>
        ${closest === null ? null : html`<p><${Button} small onClick=${() => raise(closest)}>Make it within ${percent(100 * closest)}<//></p>`}
        <details class="more"><summary>The planner's message</summary><p class="small">${error.message}</p></details>
      <//>`;
  }
  return html`
    <${ErrorBox} error=${error} onRetry=${error.status >= 500 || error.status === 0 ? again : null} />`;
}

/** The least alpha that can be kept; null where the refusal names none. */
export function closestOf(error) {
  const alpha = error?.code === "infeasible" ? error.fields.closest : null;
  return typeof alpha === "number" && alpha > 0 && alpha < 0.95 ? twoDigits(alpha) : null;
}

/** Upwards to two digits, so that what is offered can be kept. */
export function twoDigits(alpha) {
  const step = 10 ** (Math.floor(Math.log10(alpha)) - 1);
  return Number((Math.ceil(alpha / step - 1e-9) * step).toPrecision(2));
}
