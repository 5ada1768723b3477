// Ten questions about composition, each with its answer folded away; the page prepares you for all of them.

import { html } from "../../vendor/preact.js";
import { Card } from "../components/card.js";

const QUESTIONS = [
  [
    "Ten answers cost epsilon 0.1 each. Which total is certainly enough?",
    "1, their sum. Adding up is always true, and the optimum is never more.",
  ],
  [
    "A hundred answers cost 0.1 each, and the promise about all of them may fail once in a million. Is the total near 10?",
    "No, the optimum is about 4.8: less than half. Losses rarely all point the same way, and the optimum counts on that. Try it with the sliders: 100, 0.1, 0 and 1e−6.",
  ],
  ["And five such answers?", "0.5, the sum: no gain yet. Composition helps when answers are many and each is cheap."],
  [
    "What if the promise must never fail, so that the risk allowed in all is 0?",
    "Then nothing beats the sum. It can happen that all losses point the same way, and with a risk of 0 even the smallest chance counts.",
  ],
  [
    "You choose the next question after you have seen the last answer. Does the optimum still hold?",
    "Yes, if all prices were fixed before the first answer: then only the questions and the mechanisms depend on what you saw. If the prices depend on it too, a filter must keep the account.",
  ],
  [
    "A filter refuses your question. What does that cost?",
    "Nothing. It looks at prices alone and never at the secret, so a refusal says nothing about anybody.",
  ],
  [
    "Somebody rounds, sorts and combines the answers. How much more do they reveal then?",
    "No more than before. Whatever is done to an answer, its region does not grow.",
  ],
  [
    "In the picture of misses and false alarms, is a higher curve better or worse for the people in the table?",
    "Better: every guess must be wrong more often. The diagonal at the top is a coin flip.",
  ],
  [
    "Why may farthing charge any mechanism as if it were randomized response?",
    "Because its answers can be made from those of a randomized response with the same epsilon and delta. Whatever somebody finds out from them, they could have found out from that.",
  ],
  [
    "Two analysts have each seen answers for epsilon 1 about the same people. What if they compare notes?",
    "Then they know as much as one who has seen everything: epsilon 2 by adding up. This is why an account belongs to the people in the table, and not to an analyst.",
  ],
];

export function QuestionsCard() {
  return html`
    <${Card} title="Ten questions to test yourself" class="learn-questions">
      <p>Answer each one for yourself, then open it.</p>
      <ol>
        ${QUESTIONS.map(([question, answer]) => html`<li key=${question}><details><summary>${question}</summary><p>${answer}</p></details></li>`)}
      </ol>
    <//>`;
}
