// Why the optimum is proven as an interval: counting equal products by asking an accountant for prices.

import { html, useState } from "../../vendor/preact.js";
import { post } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { ErrorBox } from "../components/error.js";
import { TextField } from "../components/field.js";
import { count, listText, plural, privacy } from "../format.js";

const MOST = 10;

export function HardnessCard() {
  const [text, setText] = useState("2 3 6");
  const [found, setFound] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const integers = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  const problem = problemOf(integers);
  const run = async (event) => {
    event.preventDefault();
    if (problem) return;
    setBusy(true);
    try {
      setFound({ ...(await post("/partitions", { integers })), integers });
      setError(null);
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  return html`
    <${Card} title="Why nobody computes the optimum to the last digit" class="learn-hardness">
      <p>
        farthing gives the optimum as a very narrow interval, and not as one number. There is a reason: a fast method for
        the exact number would solve puzzles that nobody knows how to solve fast.
      </p>
      <h3>The puzzle</h3>
      <p>
        In how many ways can numbers be split into two groups with equal products? 2, 3 and 6 can be split in one way,
        because 2 · 3 = 6. With three numbers you try four splits. With a hundred there are more splits than anybody can
        ever try, and no shortcut is known. Counting such splits is #P-complete: a fast method for it could count the
        solutions of every puzzle whose solutions are easy to check.
      </p>
      <h3>How prices solve it</h3>
      <p>
        Take an answer for each number: the answer for 6 tells the truth with odds of 6 to 1, so its price is epsilon =
        ln 6. Together, a set of answers speaks for one side with odds that are the product of one group divided by the
        product of the other. Equal products are odds of 1 to 1: these answers say nothing at all. How many such cases
        there are shows in the total price close to 0: in the delta at which the price reaches 0, and in how steeply it
        falls just before. So the page asks the accountant for the total at a few values of delta.
      </p>
      <form class="learn-game-form" onSubmit=${run}>
        <${TextField} label="Numbers" value=${text} onValue=${setText} error=${problem} hint=${`Up to ${MOST} whole numbers from 1 to 99.`} />
        <div class="row"><${Button} kind="primary" type="submit" busy=${busy} disabled=${Boolean(problem)}>Count by asking for prices<//></div>
      </form>
      <${ErrorBox} error=${error} />
      <p class="strong" role="status" aria-live="polite">${found ? sentenceOf(found) : ""}</p>
      <h3>What follows from it</h3>
      <ul>
        <li>The questions are few. But each needs the exact optimum, and the only known way to compute it goes through all groups of answers, whose number doubles with every answer.</li>
        <li>It does not help that people use small epsilons: take the hundredth root of every number, and all prices are a hundred times smaller, while equal products stay equal.</li>
        <li>It is no worse than counting, either: delta is the number of ways to pass a quick check, divided by a known number. So the optimum is exactly as hard as counting.</li>
        <li>Nobody needs so many digits of an epsilon. An interval that is proven to hold the optimum is fast, and farthing charges its upper end.</li>
      </ul>
    <//>`;
}

function problemOf(integers) {
  const good = integers.every((one) => Number.isInteger(one) && one >= 1 && one <= 99);
  if (integers.length >= 1 && integers.length <= MOST && good) return null;
  return `Type from 1 to ${MOST} whole numbers between 1 and 99, with spaces between them.`;
}

function sentenceOf({ partitions, oracle_calls, bits, subsets, epsilons, integers }) {
  const ways =
    partitions === 0
      ? "cannot be split into equal products"
      : `can be split into equal products in ${plural(partitions, "way")}`;
  const prices = listText(epsilons.map(privacy));
  return `${listText(integers.map(String))} ${ways}. It took ${plural(oracle_calls, "question")} about prices of up to ${count(bits)} binary digits. The answers cost epsilon ${prices}, and behind every question stood ${count(subsets)} groups of them.`;
}
