// Step 1: which file.
import { html } from "../../vendor/preact.js";
import { get, query } from "../api.js";
import { Button } from "../components/button.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { ChoiceField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { plural } from "../format.js";
import { useAction, useLoaded } from "../server_data.js";
import { withSource } from "./declaration_draft.js";

export function FileStep({ draft, change, problemAt }) {
  const { data, error, loading, reload } = useLoaded("/sources");
  const [look, , unseen] = useAction(async (file) => {
    const table = (await get("/sources" + query({ only: file.name }))).files.find((one) => one.name === file.name);
    if (!table || table.problem) throw new Error(table?.problem ?? "The table is no longer there.");
    change((old) => (old.source === file.name ? withSource(old, table) : old));
  });
  if (error) return html`<${ErrorBox} error=${error} onRetry=${reload} />`;
  if (!data) return html`<${Loading} label="Looking for files" />`;
  if (!data.files.length) {
    return html`<${Empty} level=${3} title="The data folder is empty" action=${html`<${Button} busy=${loading} onClick=${reload}>Look again<//>`}>
      Put a CSV or Parquet file into ${data.folder_shown ? html`<code>${data.folder_shown}</code>` : "the folder that the server was started with"}, then look again. The first line of a CSV file must name its columns.
    <//>`;
  }
  const choose = (name) => {
    const file = data.files.find((one) => one.name === name);
    change((old) => withSource(old, file));
    if (file.columns.length === 0) look(file); // a table of an engine tells its columns when it is asked
  };
  const options = data.files.map((file) => [file.name, html`<strong>${file.name}</strong>`, about(file)]);
  return html`
    <${ErrorBox} error=${unseen} />
    <${ChoiceField} id="wizard-source" label="Files that this server can see" hint="Only the names of their columns have been read, and no row." value=${draft.source} onValue=${choose} options=${options} error=${problemAt("wizard-source")} />
    <${TextField} id="wizard-name" label="What should it be called?" hint="Everybody with a budget sees this name. Example: household survey 2024" value=${draft.name} onValue=${(name) => change((old) => ({ ...old, name }))} error=${problemAt("wizard-name")} maxlength="64" autocomplete="off" />`;
}

function about(file) {
  if (file.problem) return file.problem;
  if (!file.columns.length) return `a table of ${file.engine}`;
  return `${plural(file.columns.length, "column")}: ${file.columns
    .slice(0, 8)
    .map((one) => one.name)
    .join(", ")}${file.columns.length > 8 ? ", …" : ""}`;
}
