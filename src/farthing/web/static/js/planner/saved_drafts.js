// Drafts kept on the server: save, name, open, delete. Two people at one draft do not overwrite each other.

import { html, useEffect, useState } from "../../vendor/preact.js";
import { get, post, put, query, remove } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog, Dialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error.js";
import { TextField } from "../components/field.js";
import { Table } from "../components/table.js";
import { toast } from "../components/toast.js";
import { moment, plural } from "../format.js";
import { link } from "../router.js";
import { useAction, useLoaded } from "../server_data.js";
import { forServer, fromServer } from "./draft.js";
import { memo } from "./memo.js";

const CHANGED = "farthing:drafts"; // the list is loaded again

/** The name and the button. `saved` is {id, version} once the server has it. */
export function SaveDraft({ draft, saved, onSaved, onTitle, onLoad }) {
  const [conflict, setConflict] = useState(false);
  const keep = async (fresh) => {
    const body = forServer(draft);
    const view =
      saved && !fresh
        ? await put(`/plans/${encodeURIComponent(saved.id)}?proof=false`, { ...body, version: saved.version })
        : await post("/plans?proof=false", body);
    onSaved({ id: view.id, version: view.version });
    // The address names the draft from now on; the screen stays as it is.
    history.replaceState(null, "", link("plan", draft.dataset, view.id));
    window.dispatchEvent(new Event(CHANGED));
    toast(saved && !fresh ? "The draft is saved." : "The draft is saved; it is listed below.");
    setConflict(false);
  };
  const [save, busy, error] = useAction(keep);
  const [load, loading, loadError] = useAction(async () => {
    const view = await get(`/plans/${encodeURIComponent(saved.id)}?proof=false`);
    onSaved({ id: view.id, version: view.version });
    onLoad(fromServer(view.draft));
    setConflict(false);
  });
  useEffect(() => setConflict(error?.code === "conflict"), [error]);
  return html`
    <form class="save-draft" onSubmit=${(event) => {
      event.preventDefault();
      save(false);
    }}>
      <${TextField} label="Name of this draft" optional value=${draft.title ?? ""} maxlength="100" onValue=${(text) => onTitle(text.trim() === "" ? null : text)} />
      <${Button} type="submit" busy=${busy}>${saved ? "Save" : "Save draft"}<//>
      ${error && error.code !== "conflict" ? html`<${ErrorBox} error=${error} title="The draft was not saved" />` : null}
    </form>
    <${Dialog} open=${conflict} title="This draft was changed elsewhere" onClose=${() => setConflict(false)} actions=${html`
      <${Button} busy=${loading} onClick=${() => load()}>Show me the other one<//>
      <${Button} kind="primary" busy=${busy} onClick=${() => save(true)}>Save mine as a new draft<//>`}>
      <p>Somebody, perhaps you in another window, has saved a newer version. It is not overwritten.</p>
      <${ErrorBox} error=${loadError} />
    <//>`;
}

/** What a draft is called: its name, or how much it asks. */
const nameOf = (line) => line.title || `a draft of ${plural(line.statistics, "statistic")}`;

/** The drafts of a dataset, in a card of their own where they have a title; nothing where there are none. */
export const Drafts = memo(({ dataset, me, current = null, title = null }) => {
  const { data, error, reload } = useLoaded(`/plans${query({ dataset })}`);
  const [doomed, setDoomed] = useState(null);
  useEffect(() => {
    window.addEventListener(CHANGED, reload);
    return () => window.removeEventListener(CHANGED, reload);
  }, [reload]);
  const [discard, busy, problem] = useAction(async () => {
    await remove(`/plans/${encodeURIComponent(doomed.id)}`);
    setDoomed(null);
    reload();
  });
  if (error) return html`<${ErrorBox} error=${error} onRetry=${reload} />`;
  const rows = data?.plans ?? [];
  if (!rows.length) return null;
  const columns = [
    {
      key: "name",
      title: "Draft",
      head: true,
      cell: (line) =>
        line.id === current?.id
          ? html`${nameOf(line)} <span class="badge accent">open</span>`
          : html`<a href=${link("plan", dataset, line.id)}>${nameOf(line)}</a>`,
    },
    {
      key: "changed",
      title: "Changed",
      cell: (line) => `${moment(line.changed)}${line.owner === me.name ? "" : ` by ${line.owner}`}`,
    },
    {
      key: "discard",
      title: html`<span class="unseen">Delete</span>`,
      cell: (line) =>
        line.owner === me.name
          ? html`<${Button} kind="quiet" small onClick=${() => setDoomed(line)} aria-label=${`Delete ${nameOf(line)}`}>Delete<//>`
          : null,
    },
  ];
  const list = html`
    <${Table} caption=${`Drafts for ${dataset}`} hideCaption columns=${columns} rows=${rows} rowKey=${(line) => line.id} />
    <${ConfirmDialog} open=${doomed !== null} title="Delete this draft?" confirm="Delete" kind="danger" busy=${busy} onConfirm=${() => discard()} onClose=${() => setDoomed(null)}>
      <p>A draft is only a plan: nothing was spent on it, and nothing that was released is lost.</p>
      <${ErrorBox} error=${problem} />
    <//>`;
  return title ? html`<${Card} title=${title}>${list}<//>` : list;
});
