// The screen "Series": counts and running totals of a table that grows, with the error of every future period.
import { html, useEffect } from "../../vendor/preact.js";
import { post, query } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { amount, moment, plusMinus } from "../format.js";
import { StateBadge } from "../release/releases.js";
import { link } from "../router.js";
import { ErrorsChart } from "../series/errors_chart.js";
import { SeriesForm } from "../series/series_form.js";
import { useAction, useLoaded } from "../server_data.js";

export default function Series({ params, me }) {
  const { dataset, id } = params;
  return id ? html`<${One} dataset=${dataset} id=${id} me=${me} />` : html`<${All} dataset=${dataset} me=${me} />`;
}

function All({ dataset, me }) {
  const path = "/datasets/" + encodeURIComponent(dataset);
  const about = useLoaded(path);
  const { data, error, reload } = useLoaded("/series" + query({ dataset }));
  const columns = [
    {
      key: "id",
      title: "Opened",
      head: true,
      cell: (one) => html`<a href=${link("series", dataset, one.id)}>${moment(one.created)}</a>`,
    },
    { key: "state", title: "State", cell: (one) => html`<${StateBadge} state=${one.state} />` },
    { key: "owner", title: "By" },
    { key: "sentence", title: "What it is" },
  ];
  return html`<${Page} title=${`Running series of ${dataset}`} lead="Counts and running totals of a table that grows: paid for once, released period by period, with every error known at the start.">
    <${ErrorBox} error=${error ?? about.error} onRetry=${error ? reload : about.reload} />
    ${!data && !error && html`<${Loading} label="Loading the series" lines=${3} />`}
    ${data?.series.length > 0 && html`<${Card} title="Series"><${Table} caption=${`Running series of ${dataset}`} hideCaption columns=${columns} rows=${data.series} rowKey=${(one) => one.id} /><//>`}
    ${about.data && me.role !== "auditor" && html`<${SeriesForm} about=${about.data} me=${me} />`}
  <//>`;
}

const AGAIN = 1000; // ms: a series that is being opened is there soon

function One({ dataset, id, me }) {
  const path = "/series/" + encodeURIComponent(id);
  const { data, error, reload, setData } = useLoaded(path);
  const [release, busy, refusal] = useAction(async (until) => {
    const after = await post(path + "/release", until ? { until } : {});
    toast(after.sentence);
    setData(after);
  });
  const opening = data && !data.plan && !data.error;
  useEffect(() => {
    if (!opening) return undefined;
    const look = setTimeout(reload, AGAIN);
    return () => clearTimeout(look);
  }, [opening, data, reload]);
  const mine = data && (data.owner === me.name || me.role === "curator");
  const waiting = data?.over ?? [];
  return html`<${Page} title=${`A running series of ${dataset}`} lead=${data?.sentence ?? ""}>
    <p><a href=${link("series", dataset)}>All series of ${dataset}</a></p>
    <${ErrorBox} error=${error} onRetry=${reload} />
    <${ErrorBox} error=${refusal} />
    ${!data && !error && html`<${Loading} label="Loading the series" lines=${6} />`}
    ${data?.error && html`<${ErrorBox} error=${data.error} />`}
    ${opening && html`<${Notice} live title="Not open yet"><p>${data.sentence}</p><p><${Button} small onClick=${reload}>Look again<//></p><//>`}
    ${
      data?.plan &&
      mine &&
      waiting.length > 0 &&
      html`<${Card} title="What can be released now">
      <p>It was paid for when the series was opened: releasing it costs nothing more, and what is released is never changed.</p>
      <div class="row">
        <${Button} kind="primary" busy=${busy} onClick=${() => release(waiting[0])}>Release ${waiting[0]}<//>
        ${waiting.length > 1 && html`<${Button} busy=${busy} onClick=${() => release(null)}>Release all ${waiting.length} that are over<//>`}
      </div>
    <//>`
    }
    ${data?.plan && html`<${Card} title="The error of every period"><${ErrorsChart} plan=${data.plan} done=${data.steps.length} /><ul>${data.plan.sentences.map((sentence) => html`<li>${sentence}</li>`)}</ul><//>`}
    ${data?.plan && html`<${Steps} data=${data} />`}
  <//>`;
}

function Steps({ data }) {
  const rows = data.steps.flatMap(({ period, cells }) => cells.map((cell) => ({ ...cell, period }))).reverse();
  if (!rows.length) return html`<${Card} title="Released so far"><p class="muted">Nothing yet.</p><//>`;
  const several = data.plan.series.length > 1;
  const number = (value, error) => html`${amount(value, error)} <span class="muted">${plusMinus(error)}</span>`;
  const columns = [
    { key: "period", title: "Period", head: true },
    ...(several ? [{ key: "label", title: "Of" }] : []),
    { key: "count", title: "Count", right: true, cell: (one) => number(one.count, one.count_error) },
    { key: "total", title: "Total so far", right: true, cell: (one) => number(one.total, one.total_error) },
  ];
  return html`<${Card} title="Released so far">
    <${Table} caption="Counts and running totals, the newest first" columns=${columns} rows=${rows} rowKey=${(one) => `${one.period} ${one.label}`} />
  <//>`;
}
