// The releases of a dataset: reading them again is free.

import { html } from "../../vendor/preact.js";
import { query } from "../api.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Table } from "../components/table.js";
import { epsilon, moment } from "../format.js";
import { memo } from "../planner/memo.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

export const STATES = {
  queued: ["waiting", "warn"],
  running: ["running", "warn"],
  released: ["released", "good"],
  forfeited: ["paid, answer lost", "bad"],
  refused: ["refused, nothing spent", "bad"],
  failed: ["failed, nothing spent", "bad"],
};

export function StateBadge({ state }) {
  const [words, tone] = STATES[state] ?? [state, ""];
  return html`<span class="badge ${tone}">${words}</span>`;
}

function PlainReleases({ dataset, except = null, title = "Released before" }) {
  const { data, error, reload } = useLoaded(`/releases${query({ dataset })}`);
  const rows = (data?.releases ?? []).filter((one) => one.request_id !== except);
  const columns = [
    {
      key: "created",
      title: "When",
      head: true,
      cell: (one) => html`<a href=${link("release", one.request_id)}>${moment(one.created)}</a>`,
    },
    { key: "state", title: "State", cell: (one) => html`<${StateBadge} state=${one.state} />` },
    {
      key: "charged",
      title: "Spent",
      right: true,
      cell: (one) => (one.charged ? epsilon(one.charged.epsilon) : "nothing"),
    },
    { key: "owner", title: "By", cell: (one) => one.owner },
  ];
  return html`
    <${Card} title=${title} class="releases">
      ${
        error
          ? html`<${ErrorBox} error=${error} onRetry=${reload} />`
          : !data
            ? html`<${Loading} label="Loading releases" lines=${2} />`
            : rows.length
              ? html`<${Table} caption=${`Releases of ${dataset}`} hideCaption columns=${columns} rows=${rows} rowKey=${(one) => one.request_id} />`
              : html`<p class="muted">${except ? "Nothing else" : "Nothing"} was released from ${dataset} yet.</p>`
      }
    <//>`;
}

export const Releases = memo(PlainReleases);
