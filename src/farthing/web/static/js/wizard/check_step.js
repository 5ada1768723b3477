// Step 5: everything in words, checked by the server; nothing is written before the button is pressed.
import { html, useEffect, useState } from '../../vendor/preact.js';
import { post } from '../api.js';
import { privacy } from '../format.js';
import { ErrorBox } from '../components/error.js';
import { Loading } from '../components/loading.js';
import { Notice } from '../components/notice.js';
import { bodyOf, declarable, sentenceOf } from './draft.js';
import { odds } from './budget_step.js';
import { promise } from './unit_step.js';

export function CheckStep({ draft, refusal, onChecked }) {
  const [state, setState] = useState({ data: null, error: null });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setState({ data: null, error: null });
    onChecked(false);
    post('/datasets/check', bodyOf(draft), { signal: stop.signal }).then(
      (data) => { setState({ data, error: null }); onChecked(true); },
      (error) => error.name !== 'AbortError' && setState({ data: null, error }),
    );
    return () => stop.abort();
  }, [again]);
  const left = declarable(draft).filter((name) => draft.columns[name].kind === 'none');
  return html`
    <dl class="facts">
      <dt>Name</dt><dd>${draft.name}</dd>
      <dt>File</dt><dd><code>${draft.source}</code></dd>
      <dt>Promise</dt><dd>${promise(draft)}</dd>
      <dt>Columns</dt><dd><ul class="plain">${said(state.data, draft).map((text) => html`<li key=${text}>${text}</li>`)}</ul>
        ${left.length > 0 && html`<p class="muted small">Left out: ${left.join(', ')}.</p>`}</dd>
      <dt>Budget</dt><dd>ε ${privacy(draft.epsilon)}, δ ${privacy(draft.delta)}. ${odds(draft.epsilon)}</dd>
    </dl>
    ${!state.data && !state.error && html`<${Loading} label="The server checks it" lines=${2} />`}
    ${state.data && html`<${Notice} tone="good" live title="The server has no objection"><p>Columns and types fit the file. No row was read and nothing has been written yet.</p><//>`}
    <${ErrorBox} error=${state.error} onRetry=${() => setAgain(again + 1)} title="This does not fit yet" />
    <${ErrorBox} error=${refusal} />`;
}

/** A sentence for each column: the server's, or ours until they arrive. */
function said(checked, draft) {
  const told = checked?.columns;
  return declarable(draft)
    .filter((name) => draft.columns[name].kind !== 'none')
    .map((name) => (Array.isArray(told) ? told.find((one) => one.name === name)?.sentence : told?.[name]) ?? sentenceOf(name, draft.columns[name]));
}
