// Traitor tracing as a toy: questions that cannot all be answered without saying whose row is in the table.

import { html, useState } from "../../vendor/preact.js";
import { Lines } from "../charts/lines.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { SelectField, TextField } from "../components/field.js";
import { amount, listText } from "../format.js";

const USERS = 20;
const REPEATS = 60; // broadcasts of each kind, whose answers are averaged
const BLURS = {
  exact: ["exactly", (share) => share],
  rounded: ["rounded to fifths", (share) => Math.round(5 * share) / 5],
  noisy: ["with random noise of up to 0.2", (share) => share + 0.4 * (random() - 0.5)],
};

export function TraitorsCard() {
  const [text, setText] = useState("4 9 15");
  const [blur, setBlur] = useState("rounded");
  const [found, setFound] = useState(null);
  const rows = [
    ...new Set(
      text
        .split(/[\s,;]+/)
        .filter(Boolean)
        .map(Number),
    ),
  ];
  const good = rows.length >= 1 && rows.every((one) => Number.isInteger(one) && one >= 1 && one <= USERS);
  const problem = good ? null : `Type at least one number from 1 to ${USERS}.`;
  const trace = (event) => {
    event.preventDefault();
    if (!problem) setFound({ ...traced(rows, BLURS[blur][1]), rows });
  };
  return html`
    <${Card} title="Questions that nobody can answer in private" class="learn-traitors">
      <p>
        A television station has given each of ${USERS} subscribers a key, and a pirate builds a decoder from some of the
        keys. To find out whose, the station sends hidden broadcasts: the first i subscribers read 1, all others 0.
        Without the key of subscriber i + 1, nobody can tell broadcast i from broadcast i + 1. But a decoder that works
        must say 0 when nobody reads 1, and 1 when everybody does. Somewhere in between its answers jump, and the jump
        names a subscriber whose key it holds.
      </p>
      <p>
        Now let the keys be the rows of a private table, and let the question be: what share of the rows reads 1 in this
        broadcast? A program that answers all such questions well is a decoder, so it gives somebody away.
      </p>
      <form class="learn-game-form" onSubmit=${trace}>
        <${TextField} label="Whose keys are in the table" value=${text} onValue=${setText} error=${problem} />
        <${SelectField} label="It answers" value=${blur} onValue=${setBlur} options=${Object.entries(BLURS).map(([key, [name]]) => [key, name])} />
        <div class="row"><${Button} kind="primary" type="submit" disabled=${Boolean(problem)}>Trace<//></div>
      </form>
      <div aria-live="polite">${found ? html`<${Found} found=${found} />` : null}</div>
      <p class="hint">
        Blurring does not help for long: an average over many broadcasts removes it. So no fast program answers all such
        questions both well and in private. Everyday questions, such as counts by two columns, hide no keys, and
        thousands of them are answered well for a small price.
      </p>
    <//>`;
}

function Found({ found }) {
  const { means, user, jump, rows } = found;
  const right = rows.includes(user);
  const sentence = `The answers jump by ${amount(jump)} between broadcast ${user - 1} and broadcast ${user}: subscriber ${user} is accused, ${right ? "and the key is in the table" : "but the key is not in the table"}. In the table: ${listText(rows.map(String))}.`;
  return html`
    <p class="strong" role="status">${sentence}</p>
    <${Lines} title="Mean answer to each broadcast" description=${sentence} height=${240} at=${user}
      series=${[{ name: "mean answer", mark: "theorem-optimal", points: means.map((mean, ones) => [ones, mean]) }]}
      x=${{ label: "how many subscribers read 1" }} y=${{ label: "answer" }}
      table=${{ caption: "Mean answers", head: ["read 1", "answer"], rows: means.map((mean, ones) => [String(ones), amount(mean)]) }} />`;
}

/** Send broadcasts to a decoder that holds some keys, and find the largest jump. Nothing here is anybody's data. */
function traced(rows, blur) {
  const keys = Array.from({ length: USERS }, () => crypto.getRandomValues(new Uint32Array(1))[0]);
  const held = rows.map((user) => [user - 1, keys[user - 1]]);
  const decode = ({ nonce, sealed }) =>
    blur(held.reduce((sum, [place, key]) => sum + (sealed[place] ^ pad(key, nonce)), 0) / held.length);
  const broadcast = (ones) => {
    const nonce = crypto.getRandomValues(new Uint32Array(1))[0];
    return { nonce, sealed: keys.map((key, place) => Number(place < ones) ^ pad(key, nonce)) };
  };
  const means = Array.from({ length: USERS + 1 }, (_, ones) => {
    let sum = 0;
    for (let time = 0; time < REPEATS; time += 1) sum += decode(broadcast(ones));
    return sum / REPEATS;
  });
  const jumps = means.slice(1).map((mean, before) => mean - means[before]);
  const jump = Math.max(...jumps);
  return { means, jump, user: jumps.indexOf(jump) + 1 };
}

/** A bit that only the holder of the key can make; good enough for a toy. */
function pad(key, nonce) {
  let mixed = Math.imul(key ^ nonce, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return ((mixed ^ (mixed >>> 13)) >>> 16) & 1;
}

const random = () => crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32;
