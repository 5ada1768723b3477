// Two mechanisms that somebody types in: their regions, and how answers of one are made from those of the other.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Region } from "../charts/region.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { NumberField, SelectField, TextField } from "../components/field.js";
import { Table } from "../components/table.js";

const RESPONSE = "response";
const LISTS = "lists";
const KINDS = [
  [LISTS, "two lists of chances"],
  [RESPONSE, "randomized response"],
];
const MARKS = ["theorem-optimal", "theorem-advanced"];
const NAMES = ["the first", "the second"];
const RESPONSES = ["surely the first table", "probably the first", "probably the second", "surely the second table"];

const lists = (P, Q) => ({ kind: LISTS, P, Q, epsilon: 1, delta: 0 });
const response = (epsilon, delta) => ({ kind: RESPONSE, P: "0.75 0.25", Q: "0.25 0.75", epsilon, delta });
const EXAMPLES = [
  ["a weaker coin from a stronger one", lists("3/4 1/4", "1/4 3/4"), lists("0.5 0.3 0.2", "0.3 0.3 0.4")],
  ["neither from the other", lists("3/4 1/4", "1/4 3/4"), lists("0.4 0.6 0", "0 0.6 0.4")],
  ["randomized response dominates", response(0.7, 0.4), lists("0.6 0.3 0.1", "0.1 0.3 0.6")],
];
const RELATIONS = {
  equal: "Both reveal the same: each can be made from the other.",
  "second inside first": "The second reveals no more than the first: its answers can be made from those of the first.",
  "first inside second": "The first reveals no more than the second: its answers can be made from those of the second.",
  neither: "Neither can be made from the other: each helps with a guess that the other does not help with.",
};

export function MechanismsCard() {
  const [pair, setPair] = useState(EXAMPLES[0].slice(1));
  const [found, setFound] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const change = (place, part) => setPair(pair.map((one, at) => (at === place ? { ...one, ...part } : one)));
  const ready = pair.every((one) => one.kind === LISTS || (one.epsilon >= 0 && one.delta >= 0 && one.delta < 1));

  const compare = async (wanted) => {
    setBusy(true);
    try {
      const [first, second] = wanted.map(bodyOf);
      setFound({ ...(await post("/simulate", { first, second })), pair: wanted });
      setError(null);
    } catch (problem) {
      setFound(null);
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    if (ready) compare(pair);
  };
  const example = ([, first, second]) => {
    setPair([first, second]);
    compare([first, second]);
  };

  return html`
    <${Card} title="Compare two mechanisms" class="learn-mechanisms">
      <p>
        A mechanism is a list of chances for its answers, once for a table without a person, once for the table with
        them. Type two mechanisms, and see which one reveals more. If answers of one can be turned into answers of the
        other, you get the recipe; if not, you get the guess that shows why. Randomized response reveals the most of all
        mechanisms with its epsilon and delta: the answers of any other can be made from its answer.
      </p>
      <p class="row"><span>Examples:</span> ${EXAMPLES.map((one) => html`<${Button} small key=${one[0]} busy=${busy} onClick=${() => example(one)}>${one[0]}<//>`)}</p>
      <form onSubmit=${submit}>
        <div class="learn-pair">
          ${pair.map((one, place) => html`<${Mechanism} key=${place} name=${NAMES[place]} one=${one} change=${(part) => change(place, part)} />`)}
        </div>
        <${Button} kind="primary" type="submit" busy=${busy} disabled=${!ready}>Compare<//>
      </form>
      <${ErrorBox} error=${error} />
      <div aria-live="polite">${found ? html`<${Found} found=${found} />` : null}</div>
    <//>`;
}

function Mechanism({ name, one, change }) {
  return html`
    <fieldset>
      <legend>${name[0].toUpperCase() + name.slice(1)}</legend>
      <${SelectField} label=${`What ${name} is`} value=${one.kind} options=${KINDS} onValue=${(kind) => change({ kind })} />
      ${
        one.kind === LISTS
          ? html`
        <${TextField} label=${`Chances of ${name}, without the person`} value=${one.P} onValue=${(P) => change({ P })} />
        <${TextField} label=${`Chances of ${name}, with the person`} value=${one.Q} onValue=${(Q) => change({ Q })} />`
          : html`
        <${NumberField} label=${`Epsilon of ${name}`} value=${one.epsilon} onValue=${(epsilon) => change({ epsilon })} />
        <${NumberField} label=${`Delta of ${name}`} value=${one.delta} onValue=${(delta) => change({ delta })}
          hint="The chance that it tells the truth outright." />`
      }
    </fieldset>`;
}

function Found({ found }) {
  const regions = found.regions.map((points, place) => ({ name: NAMES[place], mark: MARKS[place], points }));
  const [first, second] = found.pair;
  return html`
    <p class="strong">${RELATIONS[found.relation]}</p>
    <div class="learn-region">
      <${Region} title="What guesses can reach" filled=${null} regions=${regions} table=${cornersOf(found.regions)}
        description=${`Curves of misses against false alarms for two mechanisms. ${RELATIONS[found.relation]}`}
        note="The lower curve reveals more. If the curves cross, neither mechanism can stand in for the other." />
      <div class="stack">
        <${Recipe} heading="The second from the first" found=${found.second_from_first} from=${first} name="first" />
        <${Recipe} heading="The first from the second" found=${found.first_from_second} from=${second} name="second" />
      </div>
    </div>`;
}

/** A row of chances for each answer that somebody may hold; or the sentence that says why there is none. */
function Recipe({ heading, found, from, name }) {
  if (!found.rows.length) return html`<section><h3>${heading}: impossible</h3><p>${found.sentence}</p></section>`;
  const columns = [
    {
      key: "at",
      title: `Answer of the ${name}`,
      head: true,
      cell: ({ at }) => (from.kind === RESPONSE ? RESPONSES[at] : at + 1),
    },
    ...found.rows[0].shares.map((_, place) => ({
      key: String(place),
      title: String(place + 1),
      right: true,
      cell: ({ shares }) => shares[place],
    })),
  ];
  const rows = found.rows.map((row, at) => ({ ...row, at }));
  return html`
    <section>
      <h3>${heading}</h3>
      <p>${found.sentence} The recipe works without knowing which table is the true one:</p>
      <${Table} caption="The chances of each new answer" columns=${columns} rows=${rows} rowKey=${(row) => row.at} />
    </section>`;
}

function cornersOf(regions) {
  const rows = regions.flatMap((points, place) =>
    points.map(([alarm, miss]) => [NAMES[place], alarm.toFixed(4), miss.toFixed(4)]),
  );
  return { caption: "Corners of both curves", head: ["", "P_FA", "P_MD"], rows };
}

function bodyOf(one) {
  if (one.kind === RESPONSE) return { epsilon: one.epsilon, delta: one.delta };
  return { P: shares(one.P), Q: shares(one.Q) };
}

const shares = (text) => text.split(/[\s,;]+/).filter(Boolean);
