// The entries of the ledger as sentences, with a filter.

import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { get, query } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { SelectField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Table } from "../components/table.js";
import { moment, plural, privacy } from "../format.js";
import { useAction } from "../server_data.js";

const PAGE = 200;

const KINDS = {
  created: "ledger made",
  dataset: "budget opened",
  budget: "budget changed",
  grant: "grant",
  reserve: "set aside",
  charge: "charge",
  released: "released",
  forfeited: "lost",
  refused: "refused",
  open: "opened",
  request: "request",
  approved: "approved",
  changed: "changed",
  declined: "declined",
  withdrawn: "withdrawn",
  policy: "policy",
};
const TONES = {
  charge: "accent",
  released: "good",
  refused: "bad",
  forfeited: "warn",
  approved: "good",
  declined: "bad",
};

export function EntriesCard({ dataset, round }) {
  const [entries, setEntries] = useState(null);
  const [next, setNext] = useState(null);
  const [words, setWords] = useState("");
  const [kind, setKind] = useState("");
  const current = useRef(0);
  const [load, busy, error] = useAction(async (since, before) => {
    const mine = current.current;
    const page = await get(`/ledger/entries${query({ dataset, since, limit: PAGE, newest: true })}`);
    if (mine !== current.current) return;
    setEntries([...before, ...page.entries]);
    setNext(page.next);
  });
  useEffect(() => {
    load(null, []);
    return () => {
      current.current += 1;
    };
  }, [round]);

  const kinds = [...new Set((entries ?? []).map((one) => one.kind))];
  const visible = (entries ?? []).filter((one) => (!kind || one.kind === kind) && matches(one, words));
  return html`
    <${Card} title="Entries">
      <${ErrorBox} error=${error} onRetry=${() => load(null, [])} />
      ${entries === null && !error ? html`<${Loading} lines=${6} />` : null}
      ${entries !== null && entries.length === 0 ? html`<${Empty} level=${3} title="Nothing yet">Budgets, charges and releases will be listed here, in order and for good.<//>` : null}
      ${
        entries !== null && entries.length > 0
          ? html`
        <div class="ledger-filter">
          <${TextField} label="Find" value=${words} onValue=${setWords} type="search" placeholder="a word, a name, a number" />
          <${SelectField} label="Kind" value=${kind} onValue=${setKind} options=${[["", "all kinds"], ...kinds.map((one) => [one, KINDS[one] ?? one])]} />
        </div>
        <p class="hint" role="status">${plural(visible.length, "entry", "entries")} shown, the newest first${next ? "; there are older ones" : ""}.</p>
        <${Table} caption="Entries of the ledger" hideCaption columns=${COLUMNS} rows=${visible} rowKey=${(row) => row.sequence} />
        ${next !== null && next !== undefined ? html`<p class="ledger-more"><${Button} busy=${busy} onClick=${() => load(next, entries)}>Show older ones<//></p>` : null}`
          : null
      }
    <//>`;
}

const COLUMNS = [
  { key: "sequence", title: "No.", right: true },
  {
    key: "sentence",
    title: "What happened",
    head: true,
    cell: (row) => html`<span class="ledger-sentence">${row.sentence}</span>`,
  },
  {
    key: "kind",
    title: "Kind",
    cell: (row) => html`<span class="badge ${TONES[row.kind] ?? ""}">${KINDS[row.kind] ?? row.kind}</span>`,
  },
  {
    key: "epsilon",
    title: "Epsilon",
    right: true,
    cell: (row) => (typeof row.epsilon === "number" ? privacy(row.epsilon) : ""),
  },
  { key: "who", title: "Who", cell: (row) => row.analyst || row.actor || "" },
  { key: "when", title: "When", cell: (row) => html`<span class="nowrap">${moment(row.when)}</span>` },
];

function matches(entry, words) {
  const text = [
    entry.sequence,
    entry.sentence,
    entry.dataset,
    entry.analyst,
    entry.actor,
    entry.request_id,
    entry.state,
  ]
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
