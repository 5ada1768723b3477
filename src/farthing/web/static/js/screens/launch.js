// The screen "From a Dataverse": on which file farthing was launched there, and which release is attached to it.
import { html, useEffect, useState } from "../../vendor/preact.js";
import { get, post, query } from "../api.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Page } from "../components/page.js";
import { moment } from "../format.js";
import { takeLaunch } from "../launch_link.js";
import { link } from "../router.js";
import { useAction } from "../server_data.js";

export default function Screen() {
  const [callback] = useState(takeLaunch);
  const [launch, setLaunch] = useState(null);
  const [releases, setReleases] = useState([]);
  const [ask, busy, error] = useAction(async () => {
    const said = await post("/launches", { callback });
    const all = await get("/releases");
    setReleases(all.releases.filter((one) => one.state === "released"));
    setLaunch(said);
  });
  useEffect(() => {
    if (callback) ask();
  }, []);
  const title = "From a Dataverse";
  if (!callback)
    return html`<${Page} title=${title}><p>This page works only right after you choose farthing on a file of a Dataverse. Choose it there again.</p>
      <p><a href="#/">Go to the datasets</a></p><//>`;
  if (error)
    return html`<${Page} title=${title}><${ErrorBox} error=${error} />
      <p>Links from a Dataverse are valid for a few minutes: choose farthing on the file there again.</p><//>`;
  if (busy || !launch)
    return html`<${Page} title=${title}><${Card}><${Loading} label="Asking the Dataverse which file it is" /><//><//>`;
  return html`<${Page} title=${title} lead="Attach released statistics to a restricted file.">
    <${Card} title="The file">
      <dl class="facts">
        ${launch.name && html`<dt>Name</dt><dd>${launch.name}</dd>`}
        <dt>Number</dt><dd>${launch.file}</dd>
        ${launch.restricted !== null && html`<dt>Restricted</dt><dd>${launch.restricted ? "yes" : "no"}</dd>`}
        <dt>Dataset</dt><dd><a href=${launch.url} rel="noreferrer">${launch.dataset}</a></dd>
      </dl>
    <//>
    <${Card} title="Choose the release to attach">
      ${releases.length === 0 && html`<p>Nothing has been released yet.</p>`}
      <ul>${releases.map(
        (one) => html`<li key=${one.request_id}>
          <a href=${link("release", one.request_id) + query({ dataverse: launch.dataverse, original: launch.file })}>Release of ${one.dataset}</a>
          <span class="small muted"> by ${one.owner}, ${moment(one.created)}</span></li>`,
      )}</ul>
      <p class="small muted">farthing does not read the file from the Dataverse. To release something about it first, its table
        must be among those of this server: <a href="#/">go to the datasets</a>.</p>
    <//>
  <//>`;
}
