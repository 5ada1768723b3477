// Depositing a publication in a Dataverse: where it goes, how far it is, the link at the end.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { get, post } from "../api.js";
import { Button } from "../components/button.js";
import { ErrorBox } from "../components/error.js";
import { CheckField, ChoiceField, SelectField, TextField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { useAction } from "../server_data.js";

const PAUSE = 1000;
const HOW = [
  ["", "As a draft", "Look at it there first, and publish it there or here."],
  ["minor", "Publish as a minor version", "Nobody can delete a published dataset."],
  ["major", "Publish as a major version", "Nobody can delete a published dataset."],
];
const TITLES = {
  running: "Depositing",
  done: "Deposited as a draft",
  published: "Deposited and published",
  failed: "The deposit stopped",
  interrupted: "The deposit was interrupted",
};
const TONES = { running: "info", done: "good", published: "good", failed: "bad", interrupted: "warn" };

/** `publication` is what the form says; `earlier` are the deposits of this release; `from` is what the link of a Dataverse said. */
export function Deposit({ id, dataverses, publication, earlier, from }) {
  const last = earlier.at(-1);
  const [place, setPlace] = useState({
    dataverse:
      [from.dataverse, last?.dataverse].find((one) => dataverses.some(({ url }) => url === one)) ??
      dataverses[0]?.url ??
      "",
    collection: last?.collection ?? "",
    dataset: last?.dataset ?? "",
    original: from.original ?? String(last?.original ?? ""),
    ingest: last?.ingest ?? false,
    publish: last?.publish ?? "",
  });
  const [token, setToken] = useState("");
  const [latest, setLatest] = useState(null);
  const path = `/releases/${encodeURIComponent(id)}/deposits`;
  const deposit = latest ?? earlier.find((one) => one.dataverse === place.dataverse) ?? null;
  const running = deposit?.state === "running";
  const [send, busy, error] = useAction(async () => {
    const original = place.original.trim() === "" ? null : Number(place.original);
    setLatest(
      await post(path, {
        ...place,
        collection: place.collection.trim(),
        dataset: place.dataset.trim(),
        original,
        token: token.trim(),
        publication,
      }),
    );
    setToken("");
  });
  useEffect(() => {
    if (!running) return undefined;
    let asked = 0;
    const ask = async () => {
      const all = await get(path).catch(() => []);
      const one = all.find((each) => each.dataverse === deposit.dataverse);
      if (one) setLatest(one);
      asked = setTimeout(ask, PAUSE);
    };
    asked = setTimeout(ask, PAUSE);
    return () => clearTimeout(asked);
  }, [running, path]);
  if (!dataverses.length) return html`<${HowToAllow} />`;
  const field = (name, label, hint, more = {}) => ({
    label,
    hint,
    value: place[name],
    onValue: (value) => {
      setPlace({ ...place, [name]: value });
      if (name === "dataverse") setLatest(null);
    },
    ...more,
  });
  const own = dataverses.find((one) => one.url === place.dataverse)?.has_token;
  const unfinished = deposit && !running && !["done", "published"].includes(deposit.state);
  return html`<section class="stack">
    <h3>Deposit in a Dataverse</h3>
    <${SelectField} ...${field("dataverse", "Dataverse")} options=${dataverses.map((one) => [one.url, one.url])} />
    <${TextField} ...${field("collection", "Collection", "Its alias: the last part of its address.")} />
    <${TextField} type="password" autocomplete="off" spellcheck="false" label="API token" optional=${own} value=${token} onValue=${setToken}
      hint=${own ? "Without one, the server uses its own." : "From your account page there. It is used for this deposit only and not stored."} />
    <${ChoiceField} ...${field("publish", "How it appears there")} options=${HOW} />
    <details class="more" open=${Boolean(from.original)}><summary>More about the deposit</summary><div class="stack">
      <${TextField} ...${field("original", "Number of the restricted file", "The release is attached to it. It is the number at the end of the file's address there.", { optional: true })} />
      <${TextField} ...${field("dataset", "Dataset that gets a new version", "Such as doi:10.5072/FK2/ABCDEF. Otherwise the dataset of an earlier version with this title, or a new one.", { optional: true })} />
      <${CheckField} label="Let Dataverse read the tables" checked=${place.ingest} onValue=${(ingest) => setPlace({ ...place, ingest })}
        hint="Then it shows their columns, but a download from there no longer verifies." />
    </div></details>
    <${Button} kind="primary" busy=${busy} disabled=${running || !publication} onClick=${send}>${unfinished ? "Continue the deposit" : "Deposit"}<//>
    ${error && html`<${ErrorBox} error=${error} />`}
    ${deposit && html`<${Progress} deposit=${deposit} />`}
  </section>`;
}

function Progress({ deposit }) {
  const { state, steps, error, url, persistent_id: persistent } = deposit;
  return html`<${Notice} tone=${TONES[state]} live title=${TITLES[state]}>
    ${error && html`<p>${error.message}</p>`}
    ${state === "interrupted" && html`<p>The server stopped before the deposit was finished.</p>`}
    ${["failed", "interrupted"].includes(state) && html`<p>You can continue it at any time: nothing is uploaded twice.</p>`}
    ${url && html`<p>The dataset: <a href=${url} rel="noreferrer">${persistent}</a></p>`}
    ${steps.length > 0 && html`<ol class="small deposit-steps">${steps.map((one, at) => html`<li key=${at}>${one}</li>`)}</ol>`}
  <//>`;
}

function HowToAllow() {
  return html`<p class="small muted">This server may not deposit anywhere yet. Its operator can allow a Dataverse with
    <code>farthing serve --dataverse URL</code>. Until then, save the files and upload them there,
    or deposit with <code>farthing publish --dataverse</code>.</p>`;
}
