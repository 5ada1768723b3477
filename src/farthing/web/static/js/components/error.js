// What went wrong, in the server's words, and what to do about it.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { Button } from "./button.js";
import { Notice } from "./notice.js";

const TITLES = {
  unreachable: "The server does not answer",
  unauthenticated: "You are signed out",
  not_allowed: "Your role does not allow this",
  csrf: "This sign-in is out of date",
  not_found: "This does not exist, or is not yours to see",
  conflict: "Somebody changed this in the meantime",
  budget_exceeded: "The budget does not cover this",
  undiscovered: "Something must be found first",
  infeasible: "This cannot be done within the budget",
  session_ended: "This session has ended",
  answer_forfeited: "The answer was lost",
  invalid_request: "Something in the form is not right",
  invalid_value: "A value is not allowed",
  invalid_expression: "The condition cannot be read",
  engine_error: "The data could not be reached",
  too_large: "This is too much at once",
  rate_limited: "Too many attempts",
  ledger_unavailable: "The ledger cannot be reached",
  ledger_tampered: "The ledger has been altered",
};

/** The rules that a request broke, as [{where, rule}]. */
export function problemsOf(error) {
  return Array.isArray(error?.fields?.problems) ? error.fields.problems : [];
}

/** <${ErrorBox} error=${error} onRetry=${reload} /> renders nothing without an error. */
export function ErrorBox({ error, onRetry, title }) {
  if (!error) return null;
  const wayOut = error.fields?.way_out;
  return html`<${Notice} tone="bad" live title=${title ?? TITLES[error.code] ?? "Something went wrong"}>
    <p>${error.message || "The page does not know why."}</p>
    ${wayOut && !String(error.message).includes(wayOut) && html`<p>${wayOut}</p>`}
    ${problemsOf(error).length > 0 && html`<ul>${problemsOf(error).map((one) => html`<li>${one.where}: ${one.rule}</li>`)}</ul>`}
    ${error.code === "csrf" && html`<p><${Button} onClick=${() => location.reload()}>Load the page again<//></p>`}
    ${onRetry && error.code !== "not_found" && error.code !== "not_allowed" && html`<p><${Button} small onClick=${onRetry}>Try again<//></p>`}
  <//>`;
}

/** The list of everything that must be mended before a form can go on; takes the focus when `attempt` changes. */
export function ErrorSummary({ problems, attempt }) {
  const box = useRef(null);
  useEffect(() => {
    if (problems.length) box.current?.focus();
  }, [attempt]);
  if (!problems.length) return null;
  const jump = (event, id) => {
    event.preventDefault();
    const control = document.getElementById(id);
    control?.scrollIntoView({ block: "center" });
    control?.focus();
  };
  return html`<div class="notice bad" ref=${box} tabindex="-1" role="group" aria-labelledby="error-summary-title">
    <p class="notice-title" id="error-summary-title">${problems.length === 1 ? "One entry is missing or wrong" : `${problems.length} entries are missing or wrong`}</p>
    <ul>${problems.map(({ id, text }) => html`<li key=${id}><a href=${"#" + id} onClick=${(event) => jump(event, id)}>${text}</a></li>`)}</ul>
  </div>`;
}

/**
 * Attempts to send a form: what is wrong with it is said from the first one on.
 * `checked(wrong, run)` has the problems that are said, and a `submit` that runs only if nothing is wrong.
 */
export function useAttempts() {
  const [attempt, setAttempt] = useState(0);
  const checked = (wrong, run) => {
    const problems = attempt > 0 ? wrong : [];
    const submit = (event) => {
      event.preventDefault();
      setAttempt(attempt + 1);
      if (!wrong.length) run();
    };
    return { problems, submit, problemAt: (id) => problems.find((one) => one.id === id)?.text };
  };
  return { attempt, checked, reset: () => setAttempt(0) };
}
