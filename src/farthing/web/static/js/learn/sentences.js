// What the pictures say, in sentences.

import { rightInHundred } from "../charts/region.js";
import { theoremOf } from "../charts/theorems.js";

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** The totals at k, from a grid that ends there. */
export function totalsAt(grid, k) {
  return grid.find((row) => row.k === k) || grid[grid.length - 1] || {};
}

/** The main sentence: what the optimum saves, or that there is no gain yet. */
export function gainSentence({ k, epsilon }, totals, number) {
  const { basic, optimal } = totals;
  const many = k === 1 ? "One answer" : `${number(k)} answers`;
  if (!known(optimal)) {
    return `${many} at epsilon ${number(epsilon)}: no total can be promised. Together they may fail more often than is allowed in all; move the last slider to the right.`;
  }
  if (!known(basic)) return `${many} at epsilon ${number(epsilon)} cost epsilon ${number(optimal)} together.`;
  const saved = 1 - optimal / basic;
  const start = `${many} at epsilon ${number(epsilon)} ${k === 1 ? "costs just that" : `add up to ${number(basic)}`}.`;
  if (!(saved > 0.005))
    return `${start} No gain yet: the optimum is the same. Composition helps when answers are many and each is cheap.`;
  if (optimal === 0)
    return `${start} The optimum is 0: what is revealed is within the risk allowed in all. Move the last slider to the left to see an epsilon.`;
  return `${start} The optimum is ${number(optimal)}: ${Math.floor(100 * saved)}% less, for the very same answers.`;
}

/** Beside one theorem: what it gains on the plain sum; `null` where it says nothing. */
export function gainOf(key, totals) {
  const value = totals[key];
  if (!known(value)) return "does not apply here";
  if (key === "basic") return "the baseline";
  if (!known(totals.basic)) return "";
  const saved = 1 - value / totals.basic;
  if (saved > 0.005) return `${Math.floor(100 * saved)}% less than adding up`;
  return saved < -0.005 ? "no gain yet: adding up is cheaper" : "no gain yet";
}

/** What the region means for somebody who guesses. */
export function oddsSentence(regions) {
  const main = regions.find((one) => theoremOf(one.theorem).key === "optimal");
  const right = main ? rightInHundred(main.points) : null;
  if (right === null) return "";
  if (right <= 50)
    return "A guess whether a person is in the table is right 50 times in 100, the same as a coin flip: nothing is learned.";
  if (right >= 100)
    return "A guess whether a person is in the table can be right practically every time: nothing protects them any more.";
  const odds = right / (100 - right);
  const oddsText =
    odds < 1.15
      ? ""
      : ` Those are odds of ${odds < 10 ? odds.toFixed(1) : Math.round(odds)} to 1, against 1 to 1 for a coin.`;
  return `A guess whether a person is in the table is right at most ${right} times in 100; a guess by coin flip is right 50 times in 100.${oddsText}`;
}

/** What one theorem leaves to the attacker; `null` without points. */
export function reachOf(region) {
  const right = rightInHundred(region.points);
  return right === null ? "—" : `at most ${right} in 100`;
}
