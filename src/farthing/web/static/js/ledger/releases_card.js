// What was released: title, statistics, whom it protects, which version of its table, who and when.

import { html } from "../../vendor/preact.js";
import { query } from "../api.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Table } from "../components/table.js";
import { charged, moment } from "../format.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

const MOST = 50;

export function ReleasesCard({ dataset }) {
  const { data, error, reload } = useLoaded(`/ledger/releases${query({ dataset, limit: MOST })}`);
  const rows = data?.releases ?? [];
  const columns = [
    { key: "title", title: "Release", head: true, cell: titled },
    ...(rows.some((one) => one.statistics.length && one.title !== one.statistics.join(", "))
      ? [{ key: "statistics", title: "Statistics", cell: (one) => one.statistics.join(", ") }]
      : []),
    ...(rows.some((one) => one.unit) ? [{ key: "unit", title: "Protects" }] : []),
    ...(rows.some((one) => one.version)
      ? [{ key: "version", title: "Table", cell: (one) => one.version?.text ?? "" }]
      : []),
    { key: "epsilon", title: "Spent", right: true, cell: (one) => charged(one.epsilon ?? Infinity) },
    { key: "who", title: "Who" },
    { key: "when", title: "When", cell: (one) => html`<span class="nowrap">${moment(one.when)}</span>` },
  ];
  return html`
    <${Card} title="Releases">
      <${ErrorBox} error=${error} onRetry=${reload} />
      ${!data && !error ? html`<${Loading} lines=${3} />` : null}
      ${data && !rows.length ? html`<p class="muted">Nothing was released yet.</p>` : null}
      ${rows.length ? html`<${Table} caption="Releases, the newest first" hideCaption stacks columns=${columns} rows=${rows} rowKey=${(one) => one.request_id} />` : null}
      ${rows.length === MOST ? html`<p class="hint">The last ${MOST}; older ones are among the entries below.</p>` : null}
    <//>`;
}

/** The title, with the way to the answers where this server has them. */
function titled(one) {
  const title = one.title || one.request_id;
  if (one.kind === "release") return html`<a href=${link("release", one.request_id)}>${title}</a>`;
  if (one.kind === "series") return html`<a href=${link("series", one.dataset, one.request_id)}>${title}</a>`;
  if (one.kind === "synthetic table")
    return html`<a href=${link("synthetic", one.dataset, one.request_id)}>${title}</a>`;
  return title;
}
