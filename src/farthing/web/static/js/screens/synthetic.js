// The screen "Synthetic": tables of rows that belong to nobody, and where they can be trusted.
import { html, useEffect } from "../../vendor/preact.js";
import { address, query } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Table } from "../components/table.js";
import { charged, count, moment, percent, percentAtMost, privacy } from "../format.js";
import { StateBadge } from "../release/releases.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";
import { SyntheticForm } from "../synthetic/synthetic_form.js";

export default function Synthetic({ params, me }) {
  const { dataset, id } = params;
  return id ? html`<${One} dataset=${dataset} id=${id} />` : html`<${All} dataset=${dataset} me=${me} />`;
}

function All({ dataset, me }) {
  const about = useLoaded("/datasets/" + encodeURIComponent(dataset));
  const { data, error, reload } = useLoaded("/synthetic-tables" + query({ dataset }));
  const columns = [
    {
      key: "id",
      title: "Made",
      head: true,
      cell: (one) => html`<a href=${link("synthetic", dataset, one.id)}>${moment(one.created)}</a>`,
    },
    { key: "state", title: "State", cell: (one) => html`<${StateBadge} state=${one.state} />` },
    { key: "owner", title: "By" },
    { key: "sentence", title: "What it is" },
  ];
  return html`<${Page} title=${`Synthetic tables of ${dataset}`} lead="Rows that belong to nobody, with about the counts of those that do: paid for once, with a verdict on every column and pair of columns.">
    <${ErrorBox} error=${error ?? about.error} onRetry=${error ? reload : about.reload} />
    ${!data && !error && html`<${Loading} label="Loading the tables" lines=${3} />`}
    ${data?.tables.length > 0 && html`<${Card} title="Tables"><${Table} caption=${`Synthetic tables of ${dataset}`} hideCaption columns=${columns} rows=${data.tables} rowKey=${(one) => one.id} /><//>`}
    ${about.data && me.role !== "auditor" && html`<${SyntheticForm} about=${about.data} me=${me} />`}
  <//>`;
}

const AGAIN = 1000; // ms: a table that is being made is there soon
const FILES = [
  ["parquet", "Parquet", "with the types of the schema"],
  ["csv", "CSV", "for spreadsheets"],
  ["html", "Quality", "a page of its own, with every verdict"],
  ["json", "JSON", "quality and receipt, for programs"],
];

function One({ dataset, id }) {
  const path = "/synthetic-tables/" + encodeURIComponent(id);
  const { data, error, reload } = useLoaded(path);
  const waits = data && !data.error && (data.state === "queued" || data.state === "running");
  useEffect(() => {
    if (!waits) return undefined;
    const look = setTimeout(reload, AGAIN);
    return () => clearTimeout(look);
  }, [waits, data, reload]);
  const made = data?.state === "released";
  return html`<${Page} title=${`A synthetic table of ${dataset}`} lead=${data?.sentence ?? ""}>
    <p><a href=${link("synthetic", dataset)}>All synthetic tables of ${dataset}</a></p>
    <${ErrorBox} error=${error} onRetry=${reload} />
    ${!data && !error && html`<${Loading} label="Loading the table" lines=${6} />`}
    ${data?.error && html`<${ErrorBox} error=${data.error} />`}
    ${waits && html`<${Notice} live title="Not made yet"><p>${data.sentence}</p><p><${Button} small onClick=${reload}>Look again<//></p><//>`}
    ${
      made &&
      data.warnings.length > 0 &&
      html`<${Notice} tone="warn" title="Much of this table is noise">${data.warnings.map((line) => html`<p key=${line}>${line[0].toUpperCase()}${line.slice(1)}.</p>`)}<//>`
    }
    ${
      made &&
      html`<${Card} title="Download">
      <p>${count(data.rows)} rows. They cost ${charged(data.epsilon)}${data.delta > 0 ? ` at δ ${privacy(data.delta)}` : ""}, once; downloading is free.</p>
      <ul class="downloads">${FILES.map(
        ([format, name, use]) => html`<li key=${format}>
        <a class="button" href=${address(`${path}/download${query({ format })}`)} download>${name}</a> <span class="small muted">${use}</span></li>`,
      )}</ul>
    <//>`
    }
    ${made && html`<${Quality} quality=${data.quality} />`}
  <//>`;
}

const TONES = { good: "good", rough: "warn", "not vouched for": "bad" };

/** Columns first, then pairs, the worst first: the rest is better than what is seen. */
function Quality({ quality }) {
  const single = quality.filter((one) => one.columns.length === 1);
  const pairs = quality.filter((one) => one.columns.length > 1).sort((a, b) => b.at_most - a.at_most);
  const columns = [
    { key: "columns", title: "Columns", head: true, cell: (one) => one.columns.join(" and ") },
    { key: "error", title: "Estimated error", right: true, cell: (one) => percent(100 * one.error) },
    { key: "at_most", title: "At most", right: true, cell: (one) => percentAtMost(100 * one.at_most) },
    {
      key: "verdict",
      title: "Verdict",
      cell: (one) => html`<span class=${`badge ${TONES[one.verdict]}`}>${one.verdict}</span>`,
    },
  ];
  return html`<${Card} title="Where it can be trusted">
    <p>The error is the share of rows that would have to move for these columns to be right. It is below “at most” in 99 of 100 cases. Of three columns together nothing is known.</p>
    <${Table} caption="How far off each column and each pair of columns is" hideCaption stacks columns=${columns} rows=${[...single, ...pairs]} rowKey=${(one) => one.columns.join(" ")} />
  <//>`;
}
