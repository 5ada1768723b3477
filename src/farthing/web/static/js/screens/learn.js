// The screen "Learn": move a slider, see the theorems and the attacker's region move. It reads no data and costs nothing.

import { html, useCallback, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { Loading } from "../components/loading.js";
import { Page } from "../components/page.js";
import { count, privacy } from "../format.js";
import { CompositionCard } from "../learn/composition.js";
import { GameCard } from "../learn/game.js";
import { HardnessCard } from "../learn/hardness.js";
import { remembered, useNewest } from "../learn/latest_answer.js";
import { MechanismsCard } from "../learn/mechanisms.js";
import { QuestionsCard } from "../learn/questions.js";
import { RegionCard } from "../learn/region.js";
import { gainSentence, totalsAt } from "../learn/sentences.js";
import { COUNTS, DELTAS, EPSILONS, LEAKS, Stops } from "../learn/stop_slider.js";
import { TraitorsCard } from "../learn/traitors.js";

const START = { k: 30, epsilon: 0.1, delta: 0, at_delta: 1e-6 };

const regionsOf = remembered((wanted) => post("/regions", wanted));
const comparisonOf = remembered(({ k, epsilon, delta, at_delta }) =>
  post("/compose", { charges: [{ epsilon, delta, count: k }], delta: at_delta }),
);

export default function Screen() {
  const [wanted, want] = useState(START);
  const change = useCallback((part) => want((before) => ({ ...before, ...part })), []);
  const pictures = useNewest(regionsOf, wanted);
  const comparison = useNewest(comparisonOf, wanted, 250);
  const parameters = pictures.of || wanted;
  const totals = pictures.value ? totalsAt(pictures.value.epsilon_of, parameters.k) : null;
  return html`
    <${Page} title="Learn what many answers cost"
      lead="Every answer reveals a little. Move the sliders to see what many answers reveal together, and what somebody could learn from them. Nothing here touches data or budget.">
      <div class="learn">
        <${Sliders} wanted=${wanted} change=${change} />
        <div class="learn-pictures stack">
          <p class="learn-claim" role="status" aria-live="polite">
            ${totals ? gainSentence(parameters, totals, privacy) : "Working it out …"}
          </p>
          <${ErrorBox} error=${pictures.error} onRetry=${pictures.again} />
          ${
            pictures.value
              ? html`
              <${CompositionCard} grid=${pictures.value.epsilon_of} of=${parameters} busy=${pictures.busy} comparison=${comparison} />
              <${RegionCard} regions=${pictures.value.regions} of=${parameters} busy=${pictures.busy} />`
              : pictures.error
                ? null
                : html`<${Card} title="What the total comes to"><${Loading} label="Drawing" lines=${6} /><//>`
          }
          <${GameCard} />
          <${MechanismsCard} />
          <${HardnessCard} />
          <${TraitorsCard} />
          <${QuestionsCard} />
        </div>
      </div>
    <//>`;
}

function Sliders({ wanted, change }) {
  return html`
    <${Card} title="Move these" class="learn-sliders">
      <div class="stack">
        <${Stops} name="k" label="Number of answers (k)" stops=${COUNTS} value=${wanted.k} text=${count}
          ends=${["← more private", "more answers →"]}
          hint="A count, a mean, a cell of a table: each is an answer."
          change=${(k) => change({ k })} />
        <${Stops} name="epsilon" label="Price of each answer (epsilon)" stops=${EPSILONS} value=${wanted.epsilon} text=${privacy}
          ends=${["← more private", "more accurate →"]}
          hint=${`One answer changes the odds about a person by a factor of at most ${privacy(Math.ceil(100 * Math.exp(wanted.epsilon)) / 100)}.`}
          change=${(epsilon) => change({ epsilon })} />
        <${Stops} name="delta" label="Risk of each answer (delta)" stops=${LEAKS} value=${wanted.delta} text=${privacy}
          ends=${["← never fails", "fails now and then →"]}
          hint="The chance that one answer's promise does not hold. Zero for most of farthing's noise."
          change=${(delta) => change({ delta })} />
        <${Stops} name="at_delta" label="Risk allowed in all" stops=${DELTAS} value=${wanted.at_delta} text=${privacy}
          ends=${["← stricter", "looser →"]}
          hint="The chance that the promise about all answers together may fail. The totals are read at this delta."
          change=${(at_delta) => change({ at_delta })} />
      </div>
    <//>`;
}
