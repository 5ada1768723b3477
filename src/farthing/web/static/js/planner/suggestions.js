// First questions for somebody who has never seen the page: one press each.

import { html } from "../../vendor/preact.js";
import { Button } from "../components/button.js";

const banded = (column) => ({
  kind: "histogram",
  column: column.name,
  ...(column.kind === "reals" || column.upper - column.lower >= 30 ? { bins: 10 } : {}),
});

/** A few statistics that this schema makes sense of: [words, entry]. */
export function suggestionsFor(schema) {
  const suggestions = [["How many rows", { kind: "count" }]];
  const category = schema.find((column) => column.kind === "categories" && (column.categories ?? []).length <= 12);
  const numbers = schema.filter((column) => ["integers", "reals"].includes(column.kind));
  if (category) suggestions.push([`How many of each ${category.name}`, { kind: "count", by: category.name }]);
  const [first, second] = [...numbers.filter((column) => column.upper - column.lower >= 2)];
  if (first) suggestions.push([`The average ${first.name}`, { kind: "mean", column: first.name }]);
  if (second ?? first) suggestions.push([`A histogram of ${(second ?? first).name}`, banded(second ?? first)]);
  if (first && category)
    suggestions.push([
      `The middle ${first.name} by ${category.name}`,
      { kind: "median", column: first.name, by: category.name },
    ]);
  return suggestions;
}

export function Suggestions({ schema, onAdd }) {
  return html`
    <div class="suggestions row" role="group" aria-label="Examples to start with">
      ${suggestionsFor(schema).map(([words, entry]) => html`<${Button} key=${words} small onClick=${() => onAdd(entry)}>+ ${words}<//>`)}
    </div>`;
}
