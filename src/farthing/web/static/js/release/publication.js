// "Publish" on a release: the form for the details that only people know, a look at the landing page, the signed files.
import { html, useState } from "../../vendor/preact.js";
import { file, post } from "../api.js";
import { Button, CopyButton } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { SelectField, TextArea, TextField } from "../components/field.js";
import { Notice } from "../components/notice.js";

const LICENCES = ["CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0"].map((one) => [one, one]);
const SUBJECTS = [
  "Agricultural Sciences",
  "Arts and Humanities",
  "Astronomy and Astrophysics",
  "Business and Management",
  "Chemistry",
  "Computer and Information Science",
  "Earth and Environmental Sciences",
  "Engineering",
  "Law",
  "Mathematical Sciences",
  "Medicine, Health and Life Sciences",
  "Physics",
  "Social Sciences",
  "Other",
].map((one) => [one, one]);
const LABELS = {
  title: "Title",
  description: "Description",
  purpose: "Purpose",
  rationale: "Why this unit and this epsilon",
  region: "Region",
  authors: "Authors",
  contact: "Contact",
};
const EMPTY = {
  title: "",
  description: "",
  purpose: "",
  rationale: "",
  region: "",
  licence: "CC-BY-4.0",
  subject: "Social Sciences",
  authors: "",
  name: "",
  email: "",
};

/** For curators: only they can sign with the key of the ledger. */
export function Publish({ id }) {
  const [form, setForm] = useState(EMPTY);
  const [busy, setBusy] = useState(null);
  const [error, setError] = useState(null);
  const [seen, setSeen] = useState(null);
  const [ready, setReady] = useState(null);
  const change = (name) => (value) => {
    setForm({ ...form, [name]: value });
    setSeen(null);
    setReady(null);
  };
  const field = (name, hint) => ({ label: LABELS[name], hint, value: form[name], onValue: change(name) });
  const path = `/releases/${encodeURIComponent(id)}/publication`;
  const run = (what, act) => async () => {
    setBusy(what);
    setError(null);
    try {
      await act();
    } catch (problem) {
      setError(problem);
    }
    setBusy(null);
  };
  const look = run("preview", async () => setSeen(await post(`${path}/preview`, body(form))));
  const make = run("files", async () => {
    if (ready) URL.revokeObjectURL(ready.href);
    const { blob, name } = await file(path, body(form));
    setReady({ href: URL.createObjectURL(blob), name });
  });
  return html`
    <${Card} title="Publish">
      <p>Others can cite a publication, read it with their programs, and verify it without your data. It costs nothing.</p>
      <details class="more"><summary>Write a publication of this release</summary>
        <${TextField} ...${field("title")} />
        <${TextArea} rows="3" ...${field("description", "What the numbers are about.")} />
        <${TextArea} rows="2" ...${field("purpose", "What they are for.")} />
        <${TextArea} rows="2" ...${field("rationale")} />
        <${TextField} ...${field("region", "Which region the data describe.")} />
        <${TextArea} rows="2" ...${field("authors", "One per line; a person as Family, Given.")} />
        <${TextField} label="Contact" value=${form.name} onValue=${change("name")} />
        <${TextField} label="E-mail of the contact" hint="It will be public." value=${form.email} onValue=${change("email")} />
        <${SelectField} label="Subject" options=${SUBJECTS} value=${form.subject} onValue=${change("subject")} />
        <${SelectField} label="Licence" options=${LICENCES} value=${form.licence} onValue=${change("licence")} />
        <div class="row">
          <${Button} busy=${busy === "preview"} disabled=${busy !== null} onClick=${look}>Preview<//>
          <${Button} kind="primary" busy=${busy === "files"} disabled=${busy !== null || !seen?.landing_page} onClick=${make}>Make the files<//>
        </div>
        ${error && html`<${ErrorBox} error=${error} />`}
        ${seen && html`<${Seen} seen=${seen} />`}
        ${
          ready &&
          html`<${Notice} tone="good" live title="The publication is ready">
            <p><a class="button" href=${ready.href} download=${ready.name}>Save ${ready.name}</a></p>
            <p class="small muted">To check it: farthing verify ${ready.name}</p><//>`
        }
      </details>
    <//>`;
}

/** What is missing, or the landing page. It is shown without scripts and without its style. */
function Seen({ seen }) {
  if (seen.missing.length)
    return html`<${Notice} tone="warn" live title="Something is missing"><p>${seen.missing.map((one) => LABELS[one] ?? one).join(", ")}</p><//>`;
  const page = seen.landing_page.replace(/<style>[^<]*<\/style>/, "");
  return html`
    <p class="small">The landing page:</p>
    <iframe class="landing-page" title="The landing page" sandbox="" srcdoc=${page}></iframe>
    <p class="small muted">It is signed with the key <code class="request-id">${seen.public_key}</code>. Show this key where readers trust you.
      <${CopyButton} small text=${seen.public_key} label="Copy the key" /></p>`;
}

/** What the server takes: without empty fields. */
function body({ name, email, authors, subject, ...texts }) {
  const named = authors.split("\n").map((one) => one.trim());
  const contact = name.trim() && email.trim() ? { name: name.trim(), email: email.trim() } : null;
  const said = Object.entries(texts).map(([key, text]) => [key, text.trim()]);
  const who = named.filter(Boolean).map((one) => ({ name: one }));
  return { ...Object.fromEntries(said), subject: [subject], authors: who, contact };
}
