// The adaptive composition game: choose the next charge after seeing the last answer, and watch the filter hold.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { NumberField, SelectField } from "../components/field.js";
import { Table } from "../components/table.js";
import { amount, privacy } from "../format.js";
import { Rivals } from "./rivals.js";

const FIXED = { epsilon: 0.2, count: 12 };
const RULES = {
  filter: {
    text: "you choose every price, a filter keeps the budget",
    body: { epsilon: 1, delta: 0.01 },
    kinds: ["response", "laplace", "gaussian"],
    says: (
      body,
    ) => `Choose what to ask next, and its price, after seeing the last answer. A filter allows epsilon ${privacy(body.epsilon)}
      at delta ${privacy(body.delta)} in all, however you choose.`,
    start: "Nothing has been asked. One charge of epsilon 1 would fit, or many small ones.",
  },
  fixed: {
    text: "all prices are fixed before the first answer",
    body: { delta: 0.01, fixed: FIXED },
    kinds: ["response", "laplace"],
    says: (
      body,
    ) => `You have ${FIXED.count} answers of epsilon ${privacy(FIXED.epsilon)}. Choose only what kind of answer comes next, after
      seeing the last one. Together they cost less than their sum, ${privacy(FIXED.count * FIXED.epsilon)}, at delta ${privacy(body.delta)}: see the running total.`,
    start: `Nothing has been asked. ${FIXED.count} answers are left.`,
  },
};
const NEW = { charges: [], view: null };
const KINDS = {
  response: {
    text: "the bit, sometimes flipped",
    label: "Epsilon",
    start: 0.2,
    body: (size) => ({ epsilon: size }),
  },
  laplace: {
    text: "the bit with Laplace noise",
    label: "Scale of the noise",
    start: 5,
    body: (size) => ({ noise: "laplace", multiplier: size }),
  },
  gaussian: {
    text: "the bit with Gaussian noise",
    label: "Standard deviation of the noise",
    start: 5,
    body: (size) => ({ noise: "gaussian", multiplier: size }),
  },
};

// Laplace noise of scale 1 / epsilon costs exactly epsilon.
const FIXED_CHARGES = {
  response: { epsilon: FIXED.epsilon },
  laplace: { noise: "laplace", multiplier: 1 / FIXED.epsilon },
};

export function GameCard() {
  const [rule, setRule] = useState("filter");
  const [game, setGame] = useState(NEW);
  const [kind, setKind] = useState("response");
  const [size, setSize] = useState(KINDS.response.start);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const over = Boolean(game.view?.outcome);
  const { body, kinds, says, start } = RULES[rule];
  const fixed = rule === "fixed";

  const move = async (charges, finished) => {
    setBusy(true);
    try {
      const view = await post("/play", { ...body, charges, seed: game.view?.seed ?? null, finished });
      setGame({ charges, view });
      setError(null);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const choose = (next) => {
    setKind(next);
    setSize(KINDS[next].start);
  };
  const changeRule = (next) => {
    setRule(next);
    setGame(NEW);
    setError(null);
    if (!RULES[next].kinds.includes(kind)) choose("response");
  };
  const ask = (event) => {
    event.preventDefault();
    if (fixed) move([...game.charges, FIXED_CHARGES[kind]], false);
    else if (size > 0) move([...game.charges, KINDS[kind].body(size)], false);
  };

  return html`
    <${Card} title="Play: decide after every answer" class="learn-game">
      <p>
        A secret bit was made up: 0 or 1. Every answer says a little about it. ${says(body)}
      </p>
      <${SelectField} label="Rules" value=${rule} onValue=${changeRule} options=${Object.entries(RULES).map(([key, one]) => [key, one.text])} />
      <form class="learn-game-form" onSubmit=${ask}>
        <${SelectField} label="Ask for" value=${kind} onValue=${choose} disabled=${over}
          options=${kinds.map((key) => [key, KINDS[key].text])} />
        ${fixed ? null : html`<${NumberField} key=${kind} label=${KINDS[kind].label} value=${size} onValue=${setSize} disabled=${over} />`}
        <div class="row">
          <${Button} kind="primary" type="submit" busy=${busy} disabled=${over || !(fixed || size > 0)}>Ask<//>
          ${
            over
              ? html`<${Button} onClick=${() => setGame(NEW)}>New game<//>`
              : html`<${Button} busy=${busy} disabled=${!game.charges.length} onClick=${() => move(game.charges, true)}>Tell me the secret<//>`
          }
        </div>
      </form>
      <${ErrorBox} error=${error} />
      <p class="learn-game-standing" role="status" aria-live="polite">${standing(game, fixed, start)}</p>
      ${game.charges.length ? html`<${Rounds} game=${game} fixed=${fixed} />` : null}
      <${Rivals} key=${rule} body=${body} />
    <//>`;
}

function standing({ charges, view }, fixed, start) {
  if (!charges.length) return start;
  if (view.outcome) return view.outcome.sentence;
  const last = view.rounds[view.rounds.length - 1];
  const answers = FIXED.count - charges.length;
  const left = fixed
    ? `${answers === 1 ? "One answer is" : `${Math.max(0, answers)} answers are`} left.`
    : `One charge of epsilon ${privacy(view.remaining)} would still fit.`;
  if (last.answer === null)
    return `Refused: this would be more than the budget allows, so nothing was answered. ${left}`;
  const lean =
    view.total === 0
      ? "The answers say nothing either way."
      : `The answers speak for ${view.total > 0 ? 1 : 0}, with odds of ${amount(Math.exp(Math.abs(view.total)))} to 1.`;
  return `${lean} The loss so far is ${amount(Math.abs(view.total))}. ${left}`;
}

function Rounds({ game, fixed }) {
  const rows = game.view.rounds.map((round, at) => ({ ...round, at: at + 1, charge: game.charges[at] })).reverse();
  const columns = [
    { key: "at", title: "Round", head: true },
    { key: "charge", title: "Asked for", cell: ({ charge }) => named(charge) },
    {
      key: "answer",
      title: "Answer",
      right: true,
      cell: ({ answer }) => (answer === null ? "refused" : amount(answer)),
    },
    // Before the losses: a phone shows it without scrolling.
    ...(fixed ? [] : [{ key: "remaining", title: "Left", right: true, cell: ({ remaining }) => privacy(remaining) }]),
    { key: "spent", title: "Spent", right: true, cell: ({ spent }) => privacy(spent) },
    { key: "loss", title: "Loss", right: true, cell: ({ answer, loss }) => (answer === null ? "—" : signed(loss)) },
    { key: "total", title: "In all", right: true, cell: ({ total }) => signed(total) },
  ];
  return html`
    <${Table} caption="The rounds, newest first" columns=${columns} rows=${rows} rowKey=${(row) => row.at} />
    <p class="hint">
      A loss above 0 speaks for 1, below 0 for 0. "Spent" is the total of all answers so far,
      at delta ${privacy(RULES.filter.body.delta)}.${" "}
      ${
        fixed
          ? `Adding up would make it ${privacy(FIXED.epsilon * Math.min(rows.length, FIXED.count))} by now.`
          : `"Left" is the largest single epsilon that the filter would admit.`
      }
    </p>`;
}

const named = (charge) =>
  charge.noise
    ? `${charge.noise === "laplace" ? "Laplace" : "Gaussian"} noise ${amount(charge.multiplier)}`
    : `epsilon ${privacy(charge.epsilon)}`;
const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + amount(Math.abs(value));
