// The screen "Release": how far it is, then the answers with their errors, to read and to take away.
import { html } from "../../vendor/preact.js";
import { address, query } from "../api.js";
import { CopyButton, LinkButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Progress } from "../components/progress.js";
import { charged, moment, privacy } from "../format.js";
import { handOver } from "../ledger/receipt_text.js";
import { Warnings } from "../planner/warnings.js";
import { Publish } from "../release/publication.js";
import { Ending } from "../release/release_failure.js";
import { hasEnded, useRelease } from "../release/release_progress.js";
import { Releases, StateBadge } from "../release/releases.js";
import { Results } from "../release/results.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

const DOWNLOADS = [
  ["csv", "Table (CSV)", "for a spreadsheet"],
  ["json", "Data (JSON)", "for a program"],
  ["html", "Report (HTML)", "for people: opens in any browser"],
  ["python", "Python", "for a script: reads it again, at no cost"],
];
const LEADS = {
  released: "These are the answers. They are stored: reading them again costs nothing.",
  queued: "Your release is on its way. You may close this page; the release continues without it.",
  running: "Your release is on its way. You may close this page; the release continues without it.",
};

export default function Screen({ params, search, me }) {
  const { release, error, retry } = useRelease(params.id);
  if (!params.id)
    return html`<${Page} title="Release"><p>This address names no release. <a href="#/">Go to the datasets</a></p><//>`;
  if (error && !release) {
    return html`<${Page} title="Release"><${ErrorBox} error=${error} onRetry=${retry} />
      <p class="small muted">Trying again cannot spend twice: this release has one id, ${params.id}.</p>
      <p><a href="#/">Back to the datasets</a></p><//>`;
  }
  if (!release)
    return html`<${Page} title="Release" lead=${LEADS.queued}><${Card}><${Loading} label="Loading the release" /><//><//>`;
  return html`
    <${Page} title=${`Release of ${release.dataset}`} lead=${LEADS[release.state] ?? "This release ended without answers."}
      actions=${release.state === "released" ? html`<${LinkButton} href=${link("plan", release.dataset)}>Plan more<//>` : null}>
      ${error ? html`<${ErrorBox} error=${error} />` : null}
      ${hasEnded(release) ? null : html`<${Running} release=${release} />`}
      <${Ending} release=${release} />
      ${release.state === "released" ? html`<${Released} release=${release} id=${params.id} me=${me} from=${search} />` : null}
      <${Releases} dataset=${release.dataset} except=${release.request_id} title="Other releases of this dataset" key=${release.state} />
    <//>`;
}

function Running({ release }) {
  const known = release.state === "running" && release.progress > 0;
  return html`
    <${Card} title="In progress">
      <${Progress} value=${known ? release.progress : null} label=${release.state === "queued" ? "Waiting for its turn" : "Reading the table and adding noise"} />
      <p class="small muted">${release.sentence}</p>
    <//>`;
}

/** For curators, because it depends on the rows: whether the table has other rows by now, and both ways on. */
function TableChanged({ release, id }) {
  const { data } = useLoaded(`/releases/${encodeURIComponent(id)}/table`);
  if (!data?.sentence) return null;
  if (!data.changed) return html`<p class="small muted">${data.sentence[0].toUpperCase()}${data.sentence.slice(1)}</p>`;
  return html`
    <${Notice} tone="warn" live id="table-changed" title="The table has changed since this was released">
      <p>These answers are about the table as it was on ${moment(release.created)}. Only curators see this note, because it depends on the rows.</p>
      <ul>
        <li>Keep them: they stay true of the table as it was, and cost nothing more.</li>
        <li>Or <a href=${link("plan", release.dataset)}>plan the same again</a> for the table as it is now. That is charged again; choose "Get new answers and pay again" if the page says that you have released exactly this already.</li>
      </ul>
    <//>`;
}

function Released({ release, id, me, from }) {
  const file = (format) => address(`/releases/${encodeURIComponent(id)}/download${query({ format })}`);
  return html`
    <${Card} title="What it cost" class="release-facts">
      <dl class="facts">
        <dt>State</dt><dd><${StateBadge} state=${release.state} /></dd>
        <dt>Spent</dt><dd>${release.charged ? html`<strong class="number" id="release-charged">${charged(release.charged.epsilon)}</strong>${release.charged.delta > 0 ? ` and δ ${privacy(release.charged.delta)}` : ""}` : "nothing"}, once</dd>
        <dt>By</dt><dd>${release.owner}, ${moment(release.created)}</dd>
        <dt>Id</dt><dd><code class="request-id">${release.request_id}</code></dd>
      </dl>
    <//>
    <${Warnings} lines=${release.warnings} />
    ${me.role === "curator" ? html`<${TableChanged} release=${release} id=${id} />` : null}
    ${release.about ? html`<p class="small">The ${release.about}.</p>` : null}
    <${Results} answers=${release.answers ?? []} numbers=${release.numbers} />
    <${Card} title="Downloads">
      <ul class="downloads">
        ${DOWNLOADS.map(
          ([format, name, use]) => html`<li key=${format}>
          <a class="button" href=${file(format)} download>${name}</a> <span class="small muted">${use}</span></li>`,
        )}
      </ul>
    <//>
    ${me.role === "curator" ? html`<${Publish} id=${id} from=${from} />` : null}
    ${
      release.receipt
        ? html`
      <${Card} title="Receipt">
        <p>It proves that the ledger holds this release. Keep it to check later that nothing was changed.</p>
        <div class="row">
          <${CopyButton} small text=${receiptText(release.receipt)} label="Copy the receipt" />
          <a class="button small" href=${link("ledger", release.dataset)} onClick=${() => handOver(receiptText(release.receipt))}>Check it in the ledger</a>
        </div>
        <details class="more"><summary>Show it</summary><pre tabindex="0" aria-label="Receipt"><code>${receiptText(release.receipt)}</code></pre></details>
      <//>`
        : null
    }`;
}

const receiptText = (receipt) => (typeof receipt === "string" ? receipt : JSON.stringify(receipt, null, 2));
