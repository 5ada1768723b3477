// The same plan as Python and as a study.toml, to copy.

import { html, useState } from "../../vendor/preact.js";
import { CopyButton } from "../components/button.js";
import { memo } from "./memo.js";

const FORMS = [
  ["code", "Python"],
  ["toml", "study.toml"],
];

function PlainCode({ view }) {
  const [form, setForm] = useState("code");
  const text = view[form] ?? "";
  return html`
    <div class="row spread">
      <div class="row" role="group" aria-label="Form of the code">
        ${FORMS.map(
          ([key, name]) => html`
          <button type="button" key=${key} class="button small" aria-pressed=${form === key ? "true" : "false"} onClick=${() => setForm(key)}>${name}</button>`,
        )}
      </div>
      <${CopyButton} small text=${text} label="Copy" />
    </div>
    <pre tabindex="0" aria-label=${`This plan as ${form === "code" ? "Python" : "study.toml"}`}><code>${text}</code></pre>`;
}

export const Code = memo(PlainCode);
