// A condition made of small choices, as the text that the planner reads ("age >= 18 and sex = 'F'").

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const KEYWORDS = new Set(
  "and or not in is null between like case when then else end true false date cast as order by group select from where".split(
    " ",
  ),
);

const quotedName = (name) =>
  PLAIN_NAME.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;

const literal = (value, column) => {
  if (column.kind === "dates") return `date '${value}'`;
  if (column.kind === "integers" || column.kind === "reals") return String(Number(value));
  return typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
};

/** What can be said about a column: [operator, words]. */
export function operatorsFor(column) {
  if (!column) return [];
  if (column.kind === "flags")
    return [
      ["true", "is true"],
      ["false", "is false"],
    ];
  if (column.kind === "categories")
    return [
      ["=", "is"],
      ["<>", "is not"],
    ];
  return [
    [">=", "is at least"],
    ["<", "is below"],
    ["<=", "is at most"],
    [">", "is above"],
    ["=", "is exactly"],
  ];
}

/** One choice as text; empty while it is not complete. */
export function conditionText({ column, operator, value }) {
  if (!column) return "";
  const name = quotedName(column.name);
  if (column.kind === "flags") return operator === "false" ? `not ${name}` : name;
  if (value === "" || value === null || value === undefined) return "";
  if (["integers", "reals"].includes(column.kind) && !Number.isFinite(Number(value))) return "";
  return `${name} ${operator} ${literal(value, column)}`;
}

/** What a condition says already, and one more. */
export const joined = (before, added) => [before.trim(), added].filter(Boolean).join(" and ");
