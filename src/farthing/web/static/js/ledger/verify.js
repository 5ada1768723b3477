// Checking the ledger: every entry against the one before it, and a receipt against the entries.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { TextArea } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { moment, plural } from "../format.js";
import { useAction } from "../server_data.js";
import { takeReceipt } from "./receipt_text.js";

const LARGEST = 500000; // characters: a receipt has a few thousand

export function VerifyCard({ summary, actions }) {
  const [result, setResult] = useState(null);
  const [handed] = useState(takeReceipt);
  const [text, setText] = useState(handed ?? "");
  const [verify, busy, error, clear] = useAction(async (receipt) => {
    setResult(null);
    const verification = await post("/ledger/verify", receipt === undefined ? {} : { receipt });
    setResult({ ...verification, receipt: receipt !== undefined });
  });
  const receipt = readReceipt(text);
  const read = async (event) => {
    const [file] = event.currentTarget.files;
    if (!file) return;
    clear();
    setResult(null);
    setText(file.size > LARGEST ? "" : await file.text());
  };
  return html`
    <${Card} title="Is it intact?" actions=${actions}>
      <p>The ledger has ${plural(summary.entries, "entry", "entries")}. Each is chained to the one before it, so a change anywhere shows.${lastVerification(summary)}</p>
      <div class="row"><${Button} kind="primary" busy=${busy} onClick=${() => verify()}>Verify the whole ledger<//></div>
      <div class="ledger-result" aria-live="polite">
        <${ErrorBox} error=${error} />
        ${result ? html`<${Result} result=${result} />` : null}
      </div>
      <details class="ledger-receipt" open=${handed !== null}>
        <summary>Check a receipt</summary>
        <p class="hint">A receipt came with each release. It proves that the ledger you see is the one that was charged then, and that nothing has been removed since.</p>
        <div class="field">
          <label for="receipt-file">From a file</label>
          <input id="receipt-file" class="input" type="file" accept=".json,application/json,.txt" onChange=${read} />
        </div>
        <${TextArea} id="receipt-text" label="Or paste it" value=${text} spellcheck="false" maxlength=${LARGEST}
          onValue=${(next) => {
            setText(next);
            setResult(null);
            clear();
          }} error=${text.trim() && receipt === null ? "This is not a receipt: it must be the JSON text that begins with { and ends with }." : null} />
        <p class="ledger-check"><${Button} busy=${busy} disabled=${receipt === null} onClick=${() => verify(receipt)}>Check this receipt<//></p>
      </details>
    <//>`;
}

function lastVerification({ verified }) {
  if (!verified?.at) return "";
  return verified.ok
    ? ` It was last found intact on ${moment(verified.at)}.`
    : ` It was found damaged on ${moment(verified.at)}.`;
}

/**
 * The text of a receipt: the whole text, or the field `receipt` of a saved release; null if it is neither.
 * It is sent as it was written: its numbers are sealed to the last digit, and JavaScript would round them.
 */
export function readReceipt(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
    return typeof value.receipt === "string" ? value.receipt : text;
  } catch {
    return null;
  }
}

function Result({ result }) {
  const what = result.receipt ? "The receipt belongs to this ledger, and the ledger is intact" : "The ledger is intact";
  if (result.ok) {
    return html`
      <${Notice} tone="good" title=${`${what}: ${plural(result.entries, "entry", "entries")} checked`}>
        <${Listed} lines=${result.notes} />
      <//>`;
  }
  if (result.ledger_ok) {
    return html`
      <${Notice} tone="warn" title="This receipt was not written by this ledger, or was changed; the ledger itself is intact">
        <${Listed} lines=${result.problems} />
        <p>Check that it is the receipt as it was handed out, to the last character, and of this ledger.</p>
        <p>If it is, the ledger has been replaced by another since: stop releasing, and compare it with your last backup.</p>
      <//>`;
  }
  return html`
    <${Notice} tone="bad" title="Something is wrong with this ledger">
      <${Listed} lines=${result.problems} />
      <${Listed} lines=${result.notes} />
      <p>Stop releasing, keep a copy of the ledger as it is, and compare it with your last backup.</p>
    <//>`;
}

function Listed({ lines }) {
  if (!lines || lines.length === 0) return null;
  return html`<ul>${lines.map((line, at) => html`<li key=${at}>${line}</li>`)}</ul>`;
}
