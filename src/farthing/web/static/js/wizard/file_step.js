// Step 1: which file.
import { html } from "../../vendor/preact.js";
import { get, query } from "../api.js";
import { Button } from "../components/button.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { CheckField, ChoiceField, TextField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { plural } from "../format.js";
import { useAction, useLoaded } from "../server_data.js";
import { EMPTY, withName, withSource, withTables } from "./declaration_draft.js";

export function FileStep({ draft, change, problemAt }) {
  const { data, error, loading, reload } = useLoaded("/sources");
  const [look, , unseen] = useAction(async (file) => {
    const table = (await get("/sources" + query({ only: file.name }))).files.find((one) => one.name === file.name);
    if (!table || table.problem) throw new Error(table?.problem ?? "The table is no longer there.");
    change((old) => {
      if (old.linked) return withFiles(old, [...chosen(old), table]);
      return old.source === file.name ? withSource(old, table) : old;
    });
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
  /** The files that are linked so far, with their columns as they were told. */
  const chosen = (old) =>
    old.tables.map(({ name, source }) => ({
      name: source,
      columns: old.sourceColumns
        .filter((column) => column.name.startsWith(name + "."))
        .map((column) => ({ ...column, name: column.name.slice(name.length + 1) })),
    }));
  const withFiles = (old, files) => withTables({ ...old, name: old.name || data.folder_shown || "" }, files);
  const tick = (file, ticked) => {
    if (ticked && file.columns.length === 0) look(file);
    else
      change((old) =>
        withFiles(old, [...chosen(old).filter(({ name }) => name !== file.name), ...(ticked ? [file] : [])]),
      );
  };
  const options = data.files.map((file) => [file.name, html`<strong>${file.name}</strong>`, about(file)]);
  return html`
    <${ErrorBox} error=${unseen} />
    ${
      data.files.length > 1 &&
      html`<${CheckField} id="wizard-linked" checked=${draft.linked} onValue=${(linked) => change((old) => ({ ...EMPTY, step: old.step, linked }))}
      label="The same people are in several files, linked by keys" hint="Example: persons, their visits, and the drugs given at each visit." />`
    }
    ${
      draft.linked
        ? html`<fieldset id="wizard-files" tabindex="-1">
      <legend>Files that hold these people</legend>
      <p class="hint">Only the names of their columns have been read, and no row.</p>
      <div class="choices">${data.files.map((file) => html`<${CheckField} key=${file.name} id=${"file-" + file.name} disabled=${Boolean(file.problem)} checked=${draft.tables.some(({ source }) => source === file.name)} onValue=${(ticked) => tick(file, ticked)} label=${html`<strong>${file.name}</strong>`} hint=${about(file)} />`)}</div>
      ${problemAt("wizard-files") && html`<p class="field-error">${problemAt("wizard-files")}</p>`}
    </fieldset>`
        : html`<${ChoiceField} id="wizard-source" label="Files that this server can see" hint="Only the names of their columns have been read, and no row." value=${draft.source} onValue=${choose} options=${options} error=${problemAt("wizard-source")} />`
    }
    <${TextField} id="wizard-name" label="What should it be called?" hint="Everybody with a budget sees this name. Example: household survey 2024" value=${draft.name} onValue=${(name) => change((old) => withName(old, name))} error=${problemAt("wizard-name")} maxlength="64" autocomplete="off" />`;
}

function about(file) {
  if (file.problem) return file.problem;
  if (!file.columns.length) return `a table of ${file.engine}`;
  const later = file.name.includes("*") ? "All files named like this are one table, also those that come later. " : "";
  return `${later}${plural(file.columns.length, "column")}: ${file.columns
    .slice(0, 8)
    .map((one) => one.name)
    .join(", ")}${file.columns.length > 8 ? ", …" : ""}`;
}
