// What can be asked of a table, in plain words; the words of study.toml come out of it (see `entryOf`).

const NUMBERS = ["integers", "reals"];
const ORDERED = ["integers", "reals", "dates"];
const MOST_OWN_CELLS = 1000; // whole numbers and days up to so many are cells of their own, as the planner has it

/** The kind of a column of text whose values nobody listed or found. */
const OPEN = "open";

const UNKNOWN = { text: OPEN, number: "reals", "whole number": "integers", date: "dates" };

/** The columns of a table with those whose values or range nobody knows yet, which are `unknown`. */
export const withUnknown = (schema, unknown) => [
  ...schema,
  ...unknown
    .filter((one) => UNKNOWN[one.kind] && one.finding === null)
    .map(({ name, kind }) => ({ name, kind: UNKNOWN[kind], unknown: true })),
];

export const KINDS = [
  { kind: "count", words: "How many rows", help: "For example how many rows in all, or how many of each sex." },
  {
    kind: "mean",
    words: "The average of a column",
    column: [...NUMBERS, "flags"],
    help: "For example the average income. Of a yes-or-no column: the share of yes.",
  },
  { kind: "median", words: "The middle value of a column", column: NUMBERS, help: "Half of the rows lie below it." },
  {
    kind: "histogram",
    words: "How many in each band or category",
    column: "any",
    bins: true,
    help: "For example how many rows of each age.",
  },
  {
    kind: "top",
    words: "The most frequent values of a column",
    column: ["categories", OPEN],
    most: true,
    help: "For example the ten most frequent diagnoses, each with its number of rows or people.",
  },
  { kind: "sum", words: "The total of a column", column: NUMBERS, help: "For example the sum of all incomes." },
  { kind: "std", words: "How spread out a column is", column: NUMBERS, help: "Its standard deviation." },
  {
    kind: "quantile",
    words: "A percentile of a column",
    column: NUMBERS,
    share: true,
    help: "90% means: nine rows in ten lie below it.",
  },
  {
    kind: "ranges",
    words: "How many in any range, chosen later",
    column: ORDERED,
    bins: true,
    help: "After the release you can ask for any range, as often as you like, at no more cost.",
  },
  {
    kind: "cdf",
    words: "What share lies below each value",
    column: ORDERED,
    bins: true,
    help: "A curve from 0% to 100%.",
  },
  {
    kind: "contingency",
    words: "A table of several columns together",
    columns: "any",
    bins: true,
    help: "For example how many rows of each sex and age.",
  },
  {
    kind: "marginals",
    words: "All tables of two columns each",
    columns: "any",
    bins: true,
    help: "Every pair of the columns you choose, all agreeing with each other.",
  },
  {
    kind: "linear_regression",
    words: "How one column depends on others (a line)",
    column: NUMBERS,
    features: [...NUMBERS, "categories"],
    help: "The coefficients of the least-squares line; each category is compared with the first.",
  },
  {
    kind: "count_distinct",
    words: "How many different values a column has",
    column: ["categories", "flags", "integers", "dates", OPEN],
    help: "For example how many different drugs were given at all.",
  },
  {
    kind: "variance",
    words: "The variance of a column",
    column: NUMBERS,
    help: "The square of the standard deviation.",
  },
  {
    kind: "quantiles",
    words: "Several percentiles of a column",
    column: NUMBERS,
    shares: true,
    help: "They rise together.",
  },
];

export const kindOf = (name) => KINDS.find((one) => one.kind === name) ?? KINDS[0];

const among = (schema, kinds) =>
  schema.filter((column) => (kinds === "any" ? column.kind !== OPEN : kinds.includes(column.kind)));

/** The columns that a statistic of this kind can speak of. */
export const columnsFor = (kind, schema) => among(schema, kind.column ?? kind.columns ?? []);

/** The columns that a regression can be on. */
export const featuresFor = (kind, schema) => among(schema, kind.features ?? []);

/** The columns whose values are few enough to cut the rows into groups. */
export const groupsOf = (schema) =>
  schema.filter(
    (column) =>
      ["categories", "flags"].includes(column.kind) || (column.kind === "integers" && column.upper - column.lower < 50),
  );

/** Whether the column can be cut into bands at all. */
export const isBanded = (column) => Boolean(column) && ORDERED.includes(column.kind);

/** Whether the planner needs to be told how many bands there are. */
export const needsBands = (column) =>
  isBanded(column) &&
  (column.unknown || column.kind === "reals" || Number(column.upper) - Number(column.lower) >= MOST_OWN_CELLS);

const MANY = 30; // values of which each as a band of its own would be more than a reader wants

/** Whether a column is cut into ten bands unless somebody says otherwise. */
const isWide = (column) =>
  needsBands(column) || (isBanded(column) && Number(column.upper) - Number(column.lower) >= MANY);

/** How many bands stand in the form: what was typed, or else what these columns suggest; NaN is a band for each value. */
export const bandsOf = (form, columns) => form.bins ?? (columns.some(isWide) ? 10 : NaN);

export const emptyForm = () => ({
  kind: "count",
  column: "",
  columns: [],
  features: [],
  bins: null,
  most: 10,
  share: 90,
  shares: "25, 50, 75",
  by: [],
  where: "",
  people: false,
  cells: null,
});

const COUNTED = ["count", "histogram", "top", "ranges", "cdf", "contingency", "marginals"];
const ONE_CELL = ["ranges", "cdf", "marginals"]; // which add up cells: each person is in one of them

/** Whether people can be counted instead of rows. */
export const countsPeople = (kind) => COUNTED.includes(kind.kind);

/** Whether it must be said in how many cells one person may count. */
export const needsCells = (kind, form) =>
  form.people && countsPeople(kind) && !ONE_CELL.includes(kind.kind) && (kind.kind !== "count" || form.by.length > 0);

/** In how many cells a person is counted if nobody is left out of any; NaN where that is not known yet. */
export function cellsOf(form, schema) {
  const kind = kindOf(form.kind);
  const known = columnsFor(kind, schema);
  const column = kind.column && (known.some((one) => one.name === form.column) ? form.column : known[0]?.name);
  const cut = [...(column ? [column] : []), ...(kind.columns ? form.columns : []), ...form.by];
  const columns = cut.map((name) => schema.find((one) => one.name === name));
  const bands = kind.bins ? bandsOf(form, columns.filter(Boolean)) : NaN;
  return columns.map((one) => sizeOf(one, bands)).reduce((all, size) => all * size, 1);
}

function sizeOf(column, bands) {
  if (column?.kind === "categories") return column.categories?.length ?? NaN;
  if (column?.kind === "flags") return 2;
  if (!isBanded(column) || column.unknown) return NaN;
  if (!Number.isNaN(bands)) return bands;
  return column.kind === "integers" ? column.upper - column.lower + 1 : NaN;
}

/** Whether it may be said in how many cells one person counts: a number of different values has its own bound. */
export const mayHaveCells = (kind, unit) => kind.kind === "count_distinct" && Boolean(unit?.length);

/** The entry of study.toml that the form describes, or the sentence that says what is missing. */
export function entryOf(form, schema) {
  const kind = kindOf(form.kind);
  const entry = { kind: kind.kind };
  const named = (name) => schema.find((column) => column.name === name);
  if (kind.column) {
    const known = columnsFor(kind, schema);
    const column = known.find((one) => one.name === form.column) ?? known[0];
    if (!column) return { problem: "This dataset has no column of the right kind for this." };
    entry[kind.kind === "linear_regression" ? "target" : "column"] = column.name;
    const bands = bandsOf(form, [column]);
    if (kind.bins && isBanded(column) && (needsBands(column) || !Number.isNaN(bands))) entry.bins = bands;
  }
  if (kind.columns) {
    if (form.columns.length < 2) return { problem: "Choose two columns or more." };
    entry.columns = form.columns;
    const bands = bandsOf(form, form.columns.map(named));
    const typed = form.bins !== null && !Number.isNaN(bands);
    const cut = form.columns
      .map(named)
      .filter((column) => (typed ? isBanded(column) : Number.isNaN(bands) ? needsBands(column) : isWide(column)));
    if (cut.length) entry.bins = Object.fromEntries(cut.map((column) => [column.name, bands]));
  }
  if (kind.features) {
    const features = form.features.filter((name) => name !== entry.target);
    if (!features.length) return { problem: "Choose the columns that it may depend on." };
    entry.features = features;
  }
  const cuts =
    entry.bins === undefined ? [] : [entry.bins].flatMap((one) => (typeof one === "object" ? Object.values(one) : one));
  if (!cuts.every((bands) => Number.isInteger(bands) && bands >= 1 && bands <= 10000)) {
    return { problem: "The number of bands must be a whole number from 1 to 10,000." };
  }
  if (kind.most) {
    if (!(Number.isInteger(form.most) && form.most >= 1 && form.most <= 10000))
      return { problem: "Say how many values to show: a whole number from 1 to 10,000." };
    entry.most = form.most;
  }
  if (kind.share) {
    if (!(form.share > 0 && form.share < 100)) return { problem: "The percentile must lie between 0 and 100." };
    entry.probability = form.share / 100;
  }
  if (kind.shares) {
    const shares = form.shares
      .split(/[,;\s]+/)
      .filter(Boolean)
      .map(Number);
    if (!shares.length || !shares.every((share) => share > 0 && share < 100))
      return { problem: "Write percentiles between 0 and 100, for example 25, 50, 75." };
    entry.probabilities = shares.map((share) => share / 100);
  }
  if (form.by.length) entry.by = form.by.length === 1 ? form.by[0] : form.by;
  if (form.where.trim()) entry.where = form.where.trim();
  if (form.people && countsPeople(kind)) entry.of = "people";
  if (needsCells(kind, form)) {
    if (!(Number.isInteger(form.cells) && form.cells >= 1 && form.cells <= 1000000))
      return { problem: "Say in how many cells one person may count: a whole number, at least 1." };
    entry.max_cells = form.cells;
  }
  if (kind.kind === "count_distinct" && form.cells !== null && !Number.isNaN(form.cells)) {
    if (!(Number.isInteger(form.cells) && form.cells >= 1 && form.cells <= 1000000))
      return { problem: "In how many cells one person may count is a whole number, at least 1; or leave it empty." };
    entry.max_cells = form.cells;
  }
  return { entry };
}

/** What an entry asks, in a few words; the server's name takes its place as soon as it is known. */
export function askedWords(entry) {
  const of = entry.column ?? entry.target ?? (entry.columns ?? []).join(", ");
  const by = [entry.by ?? []].flat().join(" and ");
  const people = entry.of === "people" && "(people)";
  return [
    entry.kind.replaceAll("_", " "),
    of && `of ${of}`,
    people,
    entry.where && `where ${entry.where}`,
    by && `by ${by}`,
  ]
    .filter(Boolean)
    .join(" ");
}
