// A table with a caption, headed columns and rows; a wide one scrolls inside its frame.
import { html } from "../../vendor/preact.js";

/**
 * columns: [{key, title, right?: bool, cell?: (row) => anything, head?: bool}]; the column with `head` names its row.
 * `stacks`: on a phone a row is a list of what its cells say, so that buttons at its end are not out of sight.
 * <${Table} caption="..." columns=${...} rows=${...} rowKey=${(row) => row.name} />
 */
export function Table({ caption, hideCaption = false, columns, rows, rowKey = (_row, at) => at, stacks = false }) {
  return html`<div class="table-frame" tabindex="0" role="region" aria-label=${caption}>
    <table class=${`table ${stacks ? "stacks" : ""}`}>
      <caption class=${hideCaption ? "unseen" : ""}>${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th key=${column.key} scope="col" class=${column.right ? "right" : ""}>${column.title}</th>`)}</tr></thead>
      <tbody>${rows.map(
        (row, at) => html`<tr key=${rowKey(row, at)}>
        ${columns.map((column) => {
          const inside = column.cell ? column.cell(row) : row[column.key];
          const look = column.right ? "right" : "";
          return column.head
            ? html`<th key=${column.key} scope="row" class=${look}>${inside}</th>`
            : html`<td key=${column.key} class=${look} data-title=${typeof column.title === "string" ? column.title : null}>${inside}</td>`;
        })}
      </tr>`,
      )}</tbody>
    </table>
  </div>`;
}
