// Disjoint parts of a table: what dividing it costs, the button that does, and the parts as datasets of their own.
import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ConfirmDialog } from "../components/dialog.js";
import { ErrorBox, ErrorSummary, useAttempts } from "../components/error.js";
import { NumberField, SelectField } from "../components/field.js";
import { Notice } from "../components/notice.js";
import { toast } from "../components/toast.js";
import { epsilon, plural, privacy } from "../format.js";
import { may } from "../login_session.js";
import { link } from "../router.js";
import { useAction } from "../server_data.js";

/** The columns that can divide it: with a list of values, and all rows of one person in one part. */
function dividing({ schema, unit }) {
  return schema
    .filter((one) => one.kind === "categories" || one.kind === "flags")
    .filter((one) => !unit.length || unit.includes(one.name))
    .map((one) => one.name);
}

/** The card; nothing where the table is whole and cannot be divided, or not by this person. */
export function Parts({ data, me, reload }) {
  const columns = me.role === "curator" && may(me, "spend") && !data.renews && !data.part ? dividing(data) : [];
  if (data.part) {
    return html`<${Card} title=${`${data.part.by} = ${data.part.value}`} id="parts">
      <p class="small">A part of <a href=${link("plan", data.part.of)}>${data.part.of}</a>. All parts were paid for together when the table was divided. What you release here uses up the budget of this part, and costs ${data.part.of} nothing more.</p>
      <${PartLinks} parts=${data.part.parts} current=${data.name} />
    <//>`;
  }
  if (!columns.length && !data.divided.length) return null;
  return html`<${Card} title="Each part by itself" id="parts">
    <div class="stack">
      ${data.divided.map((parts) => html`<${PartLinks} key=${parts[0].account} parts=${parts} />`)}
      ${columns.length > 0 && !data.budget.exhausted && html`<${Divide} data=${data} columns=${columns} reload=${reload} />`}
    </div>
  <//>`;
}

/** The parts of one division, each a link to its plan. */
function PartLinks({ parts, current = null }) {
  return html`<ul class="chips">
    ${parts.map(
      (one) =>
        html`<li key=${one.dataset}><a class="chip" href=${link("plan", one.dataset)} aria-current=${one.dataset === current ? "page" : null}>${one.account.split(" / ").at(-1)}</a></li>`,
    )}
  </ul>`;
}

function Divide({ data, columns, reload }) {
  const path = `/datasets/${encodeURIComponent(data.name)}/parts`;
  const [by, setBy] = useState(columns[0]);
  const [each, setEach] = useState(null);
  const [division, setDivision] = useState(null);
  const { attempt, checked, reset } = useAttempts();
  const words = { by, epsilon: each, delta: 0 };
  const [price, pricing, refused] = useAction(async () => setDivision(await post(`${path}/price`, words)));
  const [divide, busy, refusal] = useAction(async () => {
    const done = await post(path, { ...words, fresh: division.changed });
    toast(`${data.name} is divided into ${plural(done.parts.length, "part")}, each a dataset of its own.`);
    setDivision(null);
    reset();
    await reload();
  });
  const wrong = [
    !(each > 0 && each <= 1000) && { id: "part-epsilon", text: "Epsilon is a number above 0, at most 1,000." },
  ].filter(Boolean);
  const { problems, problemAt, submit } = checked(wrong, price);
  return html`<details class="more"><summary>Divide the table into disjoint parts</summary>
    <form class="stack narrow" onSubmit=${submit} novalidate>
      <p class="hint">Plan different statistics for different people, say the north and the south. A person is in one part, so all parts together cost what one of them may: the maximum, not the sum. For the same statistics in each part, ask for them by the column in one plan instead.</p>
      <${ErrorSummary} problems=${problems} attempt=${attempt} />
      <${ErrorBox} error=${refused ?? refusal} />
      <${SelectField} id="part-by" label="Each part by itself" value=${by} onValue=${setBy} options=${columns.map((one) => [one, one])} />
      <${NumberField} id="part-epsilon" label="Epsilon (ε) of each part" hint=${`Up to ${privacy(data.budget.remaining.epsilon)}, which is left.`} value=${each} onValue=${setEach} error=${problemAt("part-epsilon")} />
      <div><${Button} type="submit" busy=${pricing}>Show the price<//></div>
    </form>
    <${ConfirmDialog} open=${division !== null} title=${`Divide ${data.name} by ${by}?`} busy=${busy} onConfirm=${divide} onClose=${() => setDivision(null)}
      confirm=${division?.paid ? "Show its parts" : `Divide and spend ${epsilon(division?.cost.epsilon)}`}>
      ${division?.changed && html`<${Notice} tone="warn" title="The table has changed"><p>It was divided like this before it changed. Those parts can no longer be released from. Dividing it again is charged again.</p><//>`}
      <p>${division?.sentence}</p>
      ${division && !division.paid && html`<p><strong>${epsilon(division.cost.epsilon)}</strong> of ${privacy(data.budget.remaining.epsilon)} left for ${data.name} will be spent now, for good, whatever is released from the parts later. The ledger records the parts. Each of them can be used as long as the table does not change.</p>`}
    <//>
  </details>`;
}
