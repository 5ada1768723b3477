// The answers of a release: each number with its error, as a picture and as a table.

import { html } from "../../vendor/preact.js";
import { ErrorBarColumns, ErrorBarRows } from "../charts/error_bars.js";
import { Card } from "../components/card.js";
import { Table } from "../components/table.js";
import { amount, count, plusMinus } from "../format.js";

const NAMED = 10; // cells that are drawn with their labels
const DRAWN = 300; // cells in a picture; more are told in the table
const SEEN = 5; // rows of a table that are in sight at once
const LISTED = 500; // rows of a table; downloads have all of them

/** `numbers` is how many the release has in all; the intervals at once are told where there are several. */
export function Results({ answers, numbers }) {
  const together = numbers > 1;
  return html`
    ${together ? html`<p class="small">Each interval contains its value 95 times in 100${answers.some(isPartial) ? ", over the rows or people that it counts" : ""}. Those "at once" are wider: 95 times in 100 they contain all ${count(numbers)} values of this release together.</p>` : null}
    <div class="results">${answers.map((answer) => html`<${Answer} key=${answer.name} answer=${answer} together=${together} />`)}</div>`;
}

/** Whether an answer is about something else than all rows: people, or some rows of each unit. */
const isPartial = (answer) => Boolean(answer.counts) && answer.counts !== "rows";

/** Ranks as percent: the rank 0.25 of a quantile means that a quarter of the rows lies below. */
const named = (cell) =>
  cell.rank === null || cell.rank === undefined
    ? cell
    : { ...cell, label: `${cell.group ? `${cell.group}, ` : ""}${Number((100 * cell.rank).toPrecision(6))}%` };

function Answer({ answer, together }) {
  const cells = answer.cells.map(named);
  const total = answer.total ?? cells.length;
  const over = isPartial(answer) ? ` over ${answer.counts}` : ""; // in the headline of every interval
  return html`
    <${Card} title=${answer.name} class="answer" data-name=${answer.name}>
      ${cells.length === 1 ? html`<${Single} cell=${cells[0]} together=${together} counts=${isPartial(answer) ? answer.counts : ""} />` : null}
      <${Picture} name=${answer.name} cells=${cells} total=${total} over=${over} />
      ${
        cells.length > 1
          ? html`
        <div class="answer-cells">
          <${Table} caption=${total > LISTED ? `The first ${LISTED} of ${count(total)} numbers${over}; downloads have all of them` : `${count(total)} numbers${over}${cells.length > SEEN ? "; scroll to see them all" : ""}`}
            columns=${together ? [...COLUMNS, AT_ONCE] : COLUMNS} rows=${cells.slice(0, LISTED)} />
        </div>`
          : null
      }
      ${answer.note ? html`<p class="small muted">${answer.note}</p>` : null}
    <//>`;
}

function Picture({ name, cells, total, over }) {
  const description = `${name}: ${cells.slice(0, 5).map(inWords).join("; ")}`;
  if (cells.length === 1)
    return html`<${ErrorBarRows} title=${`95% interval${over}`} description=${description} rows=${[{ ...cells[0], label: "" }]} />`;
  if (cells.length <= NAMED)
    return html`<${ErrorBarRows} title=${`95% intervals${over}`} description=${description} rows=${cells} />`;
  const title = `95% intervals${over}${total > DRAWN ? `, the first ${DRAWN} of ${count(total)}` : ""}`;
  return html`<${ErrorBarColumns} title=${title} description=${description} rows=${cells.slice(0, DRAWN)} />`;
}

const COLUMNS = [
  { key: "label", title: "Cell", head: true },
  { key: "value", title: "Value", right: true, cell: (cell) => amount(cell.value, cell.error) },
  { key: "error", title: "Error (95%)", right: true, cell: (cell) => plusMinus(cell.error) },
  { key: "lower", title: "From", right: true, cell: (cell) => amount(cell.lower, cell.error) },
  { key: "upper", title: "To", right: true, cell: (cell) => amount(cell.upper, cell.error) },
];

const atOnce = (cell) =>
  cell.lower_at_once === null && cell.upper_at_once === null
    ? "any"
    : `${amount(cell.lower_at_once, cell.error)}\u00a0to\u00a0${amount(cell.upper_at_once, cell.error)}`;
const AT_ONCE = { key: "upper_at_once", title: "All at once", right: true, cell: atOnce };

const inWords = (cell) =>
  `${cell.label ? `${cell.label}: ` : ""}${amount(cell.value, cell.error)} ${plusMinus(cell.error)}`;

function Single({ cell, together, counts }) {
  return html`
    <p class="answer-number"><span class="number strong">${amount(cell.value, cell.error)}</span> <span class="number">${plusMinus(cell.error)}</span></p>
    <p class="small muted">95 times in 100 the ${counts ? `value over ${counts}` : "true value"} lies between ${amount(cell.lower, cell.error)} and ${amount(cell.upper, cell.error)}.${together ? ` At once with the other numbers: ${atOnce(cell)}.` : ""}</p>`;
}
