// A condition that cannot be read: what, where, and what to write instead.
import { html, useEffect } from "../../vendor/preact.js";
import { pointed } from "../ask/column_cells.js";
import { count } from "../format.js";
import { Notice } from "./notice.js";

/** `field` is a ref to where it was typed: the cursor goes to the fault. Nothing was used up. */
export function Fault({ id, title, error, asked, field, live = false, more = null }) {
  const { text = asked, position, rule, way_out: wayOut } = error.fields;
  const placed = position === null || position === undefined ? null : pointed(text || asked, position);
  useEffect(() => {
    if (placed && field.current && field.current.value.trim() === text) {
      const before = field.current.value.length - field.current.value.trimStart().length;
      field.current.focus();
      field.current.setSelectionRange(before + placed.at, before + placed.at);
    }
  }, [error]);
  return html`<div id=${id}>
    <${Notice} tone="bad" live=${live} title=${title}>
      ${placed ? html`<pre class="fault-caret"><code>${placed.text}${"\n"}${placed.caret}</code></pre>` : null}
      <p>${placed ? html`Character ${count(position + 1)}: ` : null}${more ? null : html`${rule || error.message.split("\n")[0]}${wayOut ? `; ${wayOut}` : ""}.`}${more}</p>
    <//>
  </div>`;
}
