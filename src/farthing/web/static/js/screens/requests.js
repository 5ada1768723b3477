// The screen "Requests": an inbox for curators, one's own requests for analysts, and one request by its number.
import { html } from "../../vendor/preact.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Page } from "../components/page.js";
import { Policies } from "../requests/policies.js";
import { RequestDetails } from "../requests/request_details.js";
import { RequestTable } from "../requests/request_table.js";
import { link } from "../router.js";
import { useLoaded } from "../server_data.js";

const LEADS = {
  curator: "What analysts ask to release. You approve exactly one plan, once; every step is an entry of the ledger.",
  analyst: "What you have asked for. Once a curator has approved a plan, you can release it here, once.",
  auditor: "What analysts asked for, and what curators decided.",
};

export default function Screen({ params, me }) {
  if (params.id) return html`<${One} id=${params.id} me=${me} />`;
  return html`<${Inbox} me=${me} />`;
}

function Inbox({ me }) {
  const { data, error, reload } = useLoaded("/requests");
  const requests = data?.requests ?? [];
  const waiting = requests.filter((one) => one.state === "open" || (me.role === "analyst" && one.state === "approved"));
  const others = requests.filter((one) => !waiting.includes(one));
  const title = me.role === "curator" ? "Waiting for a decision" : "Open and approved";
  return html`<${Page} title="Requests" lead=${LEADS[me.role]}>
    <${ErrorBox} error=${error} onRetry=${reload} />
    <${Card} title=${title}>
      ${!data && !error ? html`<${Loading} lines=${3} />` : null}
      ${data && !waiting.length ? html`<${Empty} level=${3} title="Nothing is waiting">${me.role === "analyst" ? html`Plan something for one of <a href="#/">your datasets</a>, then ask for it.` : "When an analyst asks for a plan, it appears here."}<//>` : null}
      ${waiting.length ? html`<${RequestTable} caption=${title} requests=${waiting} />` : null}
    <//>
    ${others.length ? html`<${Card} title="Decided"><${RequestTable} caption="Decided" requests=${others} /><//>` : null}
    <${Policies} me=${me} />
  <//>`;
}

function One({ id, me }) {
  const { data, error, reload, setData } = useLoaded(`/requests/${encodeURIComponent(id)}`);
  const title = data ? `Request ${data.id}: ${data.title}` : `Request ${id}`;
  return html`<${Page} title=${title}>
    <p><a href=${link("requests")}>All requests</a></p>
    <${ErrorBox} error=${error} onRetry=${reload} />
    ${!data && !error ? html`<${Card}><${Loading} lines=${6} /><//>` : null}
    ${data ? html`<${RequestDetails} request=${data} me=${me} onChanged=${setData} />` : null}
  <//>`;
}
