// "Publish" on a release: the form for the details that only people know, the landing page, the signed files, a deposit.
import { html, useState } from "../../vendor/preact.js";
import { file, post } from "../api.js";
import { Button, CopyButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { useLoaded } from "../server_data.js";
import { Deposit } from "./deposit.js";
import { bodyOf, formOf, PublicationFields } from "./publication_fields.js";

/** For curators: only they can sign with the key of the ledger. `from` is what the link of a Dataverse said. */
export function Publish({ id, from = {} }) {
  const asked = useLoaded("/publishing");
  const earlier = useLoaded(`/releases/${encodeURIComponent(id)}/deposits`);
  const problem = asked.error ?? earlier.error;
  const ready = asked.data && earlier.data;
  return html`
    <${Card} title="Publish">
      <p>Others can cite a publication, read it with their programs, and verify it without your data. It costs nothing.</p>
      ${problem && html`<${ErrorBox} error=${problem} onRetry=${() => (asked.error ? asked : earlier).reload()} />`}
      ${!ready && !problem && html`<${Loading} label="Loading the form" />`}
      ${ready && html`<${Form} id=${id} asked=${asked.data} earlier=${earlier.data} from=${from} />`}
    <//>`;
}

function Form({ id, asked, earlier, from }) {
  const { fields, dataverses } = asked;
  const [form, setForm] = useState(() => formOf(fields, earlier.at(-1)?.publication));
  const [busy, setBusy] = useState(null);
  const [error, setError] = useState(null);
  const [seen, setSeen] = useState(null);
  const [ready, setReady] = useState(null);
  const change = (next) => {
    setForm(next);
    setSeen(null);
    setReady(null);
  };
  const path = `/releases/${encodeURIComponent(id)}/publication`;
  const run = (what, act) => async () => {
    setBusy(what);
    setError(null);
    try {
      await act();
    } catch (problem) {
      setError(problem);
    }
    setBusy(null);
  };
  const look = run("preview", async () => setSeen(await post(`${path}/preview`, bodyOf(fields, form))));
  const make = run("files", async () => {
    if (ready) URL.revokeObjectURL(ready.href);
    const { blob, name } = await file(path, bodyOf(fields, form));
    setReady({ href: URL.createObjectURL(blob), name });
  });
  const whole = Boolean(seen?.landing_page);
  return html`
    <details class="more" open=${earlier.length > 0 || Boolean(from.original)}><summary>Write a publication of this release</summary><div class="stack">
      <${PublicationFields} fields=${fields} form=${form} onChange=${change} />
      <div class="row">
        <${Button} busy=${busy === "preview"} disabled=${busy !== null} onClick=${look}>Preview<//>
        <${Button} kind="primary" busy=${busy === "files"} disabled=${busy !== null || !whole} onClick=${make}>Make the files<//>
      </div>
      ${error && html`<${ErrorBox} error=${error} />`}
      ${seen && html`<${Seen} seen=${seen} fields=${fields} />`}
      ${
        ready &&
        html`<${Notice} tone="good" live title="The publication is ready">
          <p><a class="button" href=${ready.href} download=${ready.name}>Save ${ready.name}</a></p>
          <p class="small muted">To check it: farthing verify ${ready.name}</p><//>`
      }
      ${
        (whole || earlier.length > 0) &&
        html`<${Deposit} id=${id} dataverses=${dataverses} earlier=${earlier} from=${from} publication=${bodyOf(fields, form)} />`
      }
    </div></details>`;
}

/** What is missing, or the landing page: without scripts, and with its style, which the page's policy knows. */
function Seen({ seen, fields }) {
  const label = (name) => fields.find((field) => field.name === name)?.label ?? name;
  if (seen.missing.length)
    return html`<${Notice} tone="warn" live title="Something is missing"><p>${seen.missing.map(label).join(", ")}</p><//>`;
  return html`
    <p class="small">The landing page:</p>
    <iframe class="landing-page" title="The landing page" sandbox="" srcdoc=${seen.landing_page}></iframe>
    <p class="small muted">It is signed with the key <code class="request-id">${seen.public_key}</code>. Show this key where readers trust you.
      <${CopyButton} small text=${seen.public_key} label="Copy the key" /></p>`;
}
