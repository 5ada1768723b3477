// What a release of the chosen statistic could look like: made-up numbers that shake with the predicted noise.

import { html } from "../../vendor/preact.js";
import { ErrorBarColumns, ErrorBarRows } from "../charts/error_bars.js";
import { amount, plusMinus } from "../format.js";
import { madeUp } from "./made_up_numbers.js";
import { memo } from "./memo.js";

const FEW = 6; // numbers that are drawn below each other

function PlainPicture({ planned, entry, schema, expected, size }) {
  const picture = madeUp({ planned, entry, schema, expected, size });
  if (!picture)
    return html`<p class="muted small">To see what an answer could look like, choose a statistic whose error is known.</p>`;
  const { cells, bars, domain, more } = picture;
  const Chart = cells.length <= FEW ? ErrorBarRows : ErrorBarColumns;
  const rows = cells.length === 1 ? [{ ...cells[0], label: "" }] : cells;
  return html`
    <div class="made-up" data-made-up="true">
      <${Chart} title=${planned.name} rows=${rows} bars=${bars} domain=${domain ?? undefined}
        description=${`Made-up numbers with the noise that this plan would add: each has an error of ${plusMinus(planned.error)}, 95 times in 100.`}
        table=${{ caption: "Made-up numbers, not your data", head: ["Cell", "Made up", "Error (95%)"], rows: cells.map((cell) => [cell.label, amount(cell.value, cell.upper - cell.value), plusMinus(cell.upper - cell.value)]) }} />
      <p class="small muted"><strong class="made-up-word">Made up.</strong> No row was read: the shape is invented, the shaking is the noise of this plan.${more ? ` ${more} more numbers are not drawn.` : ""}</p>
    </div>`;
}

export const MadeUpPicture = memo(PlainPicture);
