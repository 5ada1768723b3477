// What the same plan would cost under each composition theorem, with an honest word when none of them helps yet.

import { html } from "../../vendor/preact.js";
import { Bars } from "../charts/bars.js";
import { charged, percent, privacy } from "../format.js";
import { link } from "../router.js";
import { More } from "./disclosure.js";
import { memo } from "./memo.js";

/** How a theorem is drawn, by its key. */
const MARKS = {
  basic: "theorem-basic",
  advanced: "theorem-advanced",
  kov: "theorem-kov",
  optimal: "theorem-optimal",
  own: "theorem-optimal",
};

/** What composing saves beside adding up, in one line. */
function gainWords({ gain, basic, own }) {
  if (!gain || !(basic > 0) || !Number.isFinite(own)) return "Composition saves nothing here";
  return `Composition saves ${percent(Number((100 * (1 - own / basic)).toPrecision(2)))}`;
}

function PlainPrice({ price, cost, delta, proving }) {
  const rows = (price.rows ?? []).map((row) => ({
    label: row.key === "own" ? `${row.theorem} (what is charged)` : row.theorem,
    value: Number.isFinite(row.epsilon) ? row.epsilon : null,
    text: row.remark || "does not apply here",
    mark: MARKS[row.key],
  }));
  return html`
    <p>
      This plan costs <span class="strong number">${charged(cost.upper)}</span>${delta > 0 ? html` at δ ${privacy(delta)}` : null}.${" "}
      ${
        cost.proven
          ? html`<span class="badge good">proven</span>`
          : html`<span class="badge">${proving ? "proving …" : "estimate"}</span>`
      }
    </p>
    <${More} summary=${gainWords(price)}>${() => html`
      <${Bars} title="The same plan under each theorem" description=${price.sentence} rows=${rows} text=${privacy}
        table=${{ caption: "Epsilon of this plan under each theorem", head: ["Theorem", "Epsilon", "Remark"], rows: (price.rows ?? []).map((row) => [row.theorem, privacy(row.epsilon), row.remark ?? ""]) }} />
      <p class="small muted">${price.sentence}</p>
      ${price.adaptive_sentence ? html`<p class="small muted">${price.adaptive_sentence}</p>` : null}
      <p class="small"><a href=${link("learn")}>How composition works</a></p>`}<//>`;
}

export const Price = memo(PlainPrice);
