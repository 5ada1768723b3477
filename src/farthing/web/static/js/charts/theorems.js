// The four theorems keep their name, colour, dash and order in every picture and table.

export const THEOREMS = [
  {
    key: "basic",
    name: "plain sum",
    mark: "theorem-basic",
    says: "Add up the prices. Always true, but expensive when there are many.",
  },
  {
    key: "advanced",
    name: "advanced composition",
    mark: "theorem-advanced",
    says: "Privacy losses rarely all fall on the same side, so many small prices add up to less (2010).",
  },
  {
    key: "kov",
    name: "KOV bound",
    mark: "theorem-kov",
    says: "Kairouz, Oh and Viswanath's closed form: tighter, still a formula (2015).",
  },
  {
    key: "optimal",
    name: "optimal composition",
    mark: "theorem-optimal",
    says: "The least total that is true for every mechanism with these prices. Plans are charged by the privacy curves of their own noise, which are known, and never more than this.",
  },
];

const OTHER_NAMES = { drv: "advanced", "kov bound": "kov", sum: "basic", "basic composition": "basic" };

/** How a theorem is drawn; one that is not among the four is drawn like the plain sum, under its own name. */
export function theoremOf(key) {
  const word = String(key).toLowerCase();
  const known = THEOREMS.find((one) => one.key === (OTHER_NAMES[word] || word));
  return known || { key: word, name: String(key), mark: "theorem-basic", says: "" };
}
