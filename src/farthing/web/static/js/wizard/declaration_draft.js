// What the wizard has been told so far, what is still missing, and the body that the server is sent.
import { COMMA, parsed } from "../format.js";
import {
  asked,
  columnOf,
  datasetOf,
  guessedKeys,
  linking,
  linksOf,
  missingLinks,
  tableName,
  tableOf,
} from "./linked_tables.js";

const KEPT = "farthing-wizard";

export const EMPTY = {
  step: 0,
  source: "",
  name: "",
  sourceColumns: [],
  linked: false, // several files of the same people
  tables: [], // of these, [{name, source}]; their columns are in sourceColumns, each with its table
  keys: {}, // of each but the one that names the people, {column, target}
  bounds: {}, // how many rows of one person count, by table
  who: "",
  unit: "",
  maxRows: null,
  findsMaxRows: false, // nobody knows how many: to be found
  neighbours: "add-remove",
  rows: null,
  sample: null,
  columns: {},
  account: "", // one that is open; empty for a new one
  proposed: "", // the account that was chosen for its name, and not by a person
  accountName: "", // of the new one; empty for the name of the dataset
  renews: "", // every day, week, month, quarter or year; empty for one budget for all time
  renewsDate: "",
  renewsPeriod: "",
  epsilon: 1,
  delta: 1e-6,
};

/** A reload in the middle loses nothing; a closed tab forgets. */
export function storedDraft() {
  try {
    return { ...EMPTY, ...JSON.parse(sessionStorage.getItem(KEPT) ?? "{}") };
  } catch {
    return EMPTY;
  }
}

export function storeDraft(draft) {
  try {
    if (draft === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, JSON.stringify(draft));
  } catch {
    // not kept, but still there
  }
}

/** Kinds of columns: what they are called, and an example of what to declare. */
export const KINDS = [
  ["", "Choose …"],
  ["integers", "Whole numbers, such as an age"],
  ["reals", "Numbers with decimals, such as an income"],
  ["categories", "One of a list, such as a region"],
  ["flags", "Yes or no"],
  ["dates", "Dates"],
  ["none", "Leave this column out"],
];

const HELD = {
  "whole numbers": "integers",
  integers: "integers",
  "real numbers": "reals",
  reals: "reals",
  flags: "flags",
  dates: "dates",
  categories: "categories",
  other: "none",
  "times with a time zone": "none",
};

/** The draft with another file: its columns, each with the kind that its type tells. */
export function withSource(draft, file) {
  const columns = Object.fromEntries(
    file.columns.map(({ name, holds }) => [name, { kind: HELD[holds] ?? "", lower: "", upper: "", categories: "" }]),
  );
  const name = file.name
    .replace(/\.[^.]*$/, "")
    .replace(/[^A-Za-z0-9 ._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "")
    .slice(0, 64);
  return { ...draft, source: file.name, sourceColumns: file.columns, columns, who: "", unit: "", account: "", name };
}

/** The draft with another name: an account that was proposed for the earlier name goes with it. */
export const withName = (draft, name) => ({
  ...draft,
  name,
  ...(draft.account === draft.proposed ? { account: "", proposed: "" } : {}),
});

/** The draft with several files, whose links are guessed from the names of their columns. */
export function withTables(draft, files) {
  const tables = [];
  for (const { name: source } of files) {
    const plain = tableName(source);
    const taken = tables.some(({ name }) => name === plain);
    tables.push({ name: taken ? `${plain}_${tables.length + 1}`.slice(-64) : plain, source });
  }
  const sourceColumns = files.flatMap((file, at) =>
    file.columns.map(({ name, holds }) => ({ name: `${tables[at].name}.${name}`, holds })),
  );
  const columns = Object.fromEntries(
    sourceColumns.map(({ name, holds }) => [
      name,
      draft.columns[name] ?? { kind: HELD[holds] ?? "", lower: "", upper: "", categories: "" },
    ]),
  );
  const next = { ...draft, linked: true, source: "", tables, sourceColumns, columns, who: "column", account: "" };
  const people = sourceColumns.map(({ name }) => name).filter((place) => SOMEBODY.test(words(columnOf(place))));
  const naming = (place) =>
    sourceColumns.filter(({ name }) => tableOf(name) === tableOf(place) && isKey(columnOf(name)));
  const unit = people.sort((one, other) => naming(one).length - naming(other).length)[0] ?? "";
  return withUnit(next, unit);
}

/** The draft with another column that names the person. */
export const withUnit = (draft, unit) => ({ ...draft, unit, keys: unit ? guessedKeys(draft, unit, isKey) : {} });

const isKey = (name) => SOMEBODY.test(words(name)) || SOMETHING.test(words(name));

const SOMEBODY =
  /(^|[^a-z])(uid|ssn|nhs|mrn|person|people|patient|customer|client|member|user|subject|respondent|participant|pupil|student|employee|household|family|account|card|email|phone)s?($|[^a-z])/;
const SOMETHING = /(^|[^a-z])(id|uuid|guid|key)s?($|[^a-z])/;
const words = (name) => name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase(); // patientId is patient_id
const namesThat = (draft, test) => draft.sourceColumns.map(({ name }) => name).filter((name) => test(words(name)));

/** The columns that look as if they named a person: then somebody may have several rows. */
export const personColumns = (draft) => namesThat(draft, (name) => SOMEBODY.test(name));

/** These, and after them the numbers of anything else, such as visit_id: rows that share one may be a person's. */
export const namingColumns = (draft) => [
  ...personColumns(draft),
  ...namesThat(draft, (name) => SOMETHING.test(name) && !SOMEBODY.test(name)),
];

export const categoriesOf = (text) => [
  ...new Set(
    text
      .split(/[\n,;]/)
      .map((one) => one.trim())
      .filter(Boolean),
  ),
];

/** The columns that can be declared: the one that names the person is not among them. */
export const declarable = (draft) =>
  draft.sourceColumns
    .map(({ name }) => name)
    .filter((name) => (draft.linked ? !linking(draft).has(name) : !(draft.who === "column" && name === draft.unit)));

/** What is missing in a step, as [{id, text}]. */
export function missing(draft, step) {
  return CHECKS[step]?.(draft).filter(Boolean) ?? [];
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/;

const CHECKS = [
  (draft) => [
    !draft.linked && !draft.source && { id: "wizard-source", text: "Choose a file." },
    draft.linked && draft.tables.length < 2 && { id: "wizard-files", text: "Choose two files or more." },
    draft.source &&
      !draft.sourceColumns.length && {
        id: "wizard-source",
        text: "The columns of this file cannot be read; choose another file, or fix its first line.",
      },
    !NAME.test(draft.name) && {
      id: "wizard-name",
      text: "Give it a name: letters, digits, spaces, dots and dashes, at most 64, starting with a letter or digit.",
    },
  ],
  (draft) =>
    draft.linked
      ? missingLinks(draft)
      : [
          !draft.who && { id: "wizard-who", text: "Say where one person is in this file." },
          draft.who === "column" &&
            !draft.unit && { id: "wizard-unit", text: "Choose the column that names the person." },
          draft.who === "column" &&
            !draft.findsMaxRows &&
            !whole(draft.maxRows, 1, 1e6) && {
              id: "wizard-max-rows",
              text: "Say how many rows of one person may count: a whole number from 1.",
            },
          draft.neighbours === "replace" &&
            draft.rows !== null &&
            !whole(draft.rows, 1, 1e15) && {
              id: "wizard-rows",
              text: "The number of rows is a whole number from 1; leave it empty if it is not public.",
            },
          draft.neighbours !== "replace" &&
            draft.sample !== null &&
            !(draft.sample > 0 && draft.sample < 1) && {
              id: "wizard-sample",
              text: "The share of a sample is a number between 0 and 1; leave it empty to read the whole file.",
            },
        ],
  (draft) => {
    const names = declarable(draft);
    const used = names.filter((name) => draft.columns[name].kind !== "none");
    return [
      ...names.map((name) => missingOf(name, draft.columns[name])),
      names.length > 0 && used.length === 0 && { id: columnId(names[0]), text: "Keep at least one column." },
    ];
  },
  (draft) => [
    !draft.account &&
      draft.accountName.trim() !== "" &&
      !NAME.test(draft.accountName.trim()) && {
        id: "wizard-account-name",
        text: "The account's name has letters, digits, spaces, dots and dashes, at most 64.",
      },
    draft.renews && !draft.renewsDate && { id: "wizard-renews-date", text: "Choose the column that dates a row." },
    draft.renews &&
      !/^[0-9A-Za-z-]{4,10}$/.test(draft.renewsPeriod.trim()) && {
        id: "wizard-renews-period",
        text: "Name the period, such as 2026-03.",
      },
    !draft.account &&
      !(draft.epsilon > 0 && draft.epsilon <= 1000) && {
        id: "wizard-epsilon",
        text: "Epsilon is a number above 0, at most 1,000.",
      },
    !draft.account &&
      !(draft.delta !== null && draft.delta >= 0 && draft.delta < 1) && {
        id: "wizard-delta",
        text: "Delta is a number from 0 to below 1.",
      },
  ],
];

/** What a column of a kind is called where nobody knows its range, or its values. */
const UNKNOWN = { integers: "whole number", reals: "number", dates: "date", categories: "text" };

/** Whether a column of this kind can be declared as not known. */
export const canBeFound = (column) => column.kind in UNKNOWN;

/** Whether its range, or its values, are to be found. */
export const isToBeFound = (column) => canBeFound(column) && Boolean(column.unknown);

export const columnId = (name) => "column-" + encodeURIComponent(name).replace(/[^A-Za-z0-9_-]/g, "_");

function missingOf(name, column) {
  const id = columnId(name);
  if (column.kind === "") return { id, text: `${name}: choose what it holds.` };
  if (isToBeFound(column)) return null;
  if (column.kind === "categories" && categoriesOf(column.categories).length === 0)
    return { id: id + "-categories", text: `${name}: list its possible values.` };
  if (column.kind === "dates") {
    const dates = [column.lower, column.upper];
    if (!dates.every((one) => /^\d{4}-\d{2}-\d{2}$/.test(one)))
      return { id: id + "-lower", text: `${name}: give the first and the last day.` };
    return dates[0] > dates[1] ? { id: id + "-upper", text: `${name}: the last day is before the first.` } : null;
  }
  if (column.kind !== "integers" && column.kind !== "reals") return null;
  const [lower, upper] = [parsed(column.lower), parsed(column.upper)];
  if (lower === null) return { id: id + "-lower", text: `${name}: ${unread("lowest", column.lower)}` };
  if (upper === null) return { id: id + "-upper", text: `${name}: ${unread("highest", column.upper)}` };
  if (column.kind === "integers" && !(Number.isInteger(lower) && Number.isInteger(upper)))
    return { id: id + "-lower", text: `${name}: both ends are whole numbers.` };
  return lower >= upper ? { id: id + "-upper", text: `${name}: the highest value is not above the lowest.` } : null;
}

const unread = (which, text) =>
  text.includes(",") ? `write the ${which} value without a comma. ${COMMA}` : `give the ${which} value as a number.`;

const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;

/** The body of POST /datasets; columns that are not filled in yet are left out. */
export function bodyOf(draft, table = null) {
  const columns = {};
  for (const name of declarable(draft).filter((one) => !missingOf(one, draft.columns[one]))) {
    const declaration = columnDeclaration(
      draft.columns[name],
      draft.sourceColumns.find((one) => one.name === name).holds,
    );
    if (declaration) columns[name] = declaration;
  }
  const byColumn = draft.who === "column";
  const budget = draft.account ? { epsilon: null } : { epsilon: draft.epsilon, delta: draft.delta }; // an open one has its own
  const account = draft.account || draft.accountName.trim() || null;
  if (draft.linked) {
    const last = table ?? asked(draft).at(-1);
    const links = linksOf(draft, last, columns);
    return { name: datasetOf(draft, last), ...links, account: account ?? draft.name, ...budget };
  }
  return {
    name: draft.name,
    source: draft.source,
    unit: byColumn ? draft.unit : null,
    max_rows: byColumn ? (draft.findsMaxRows ? "auto" : draft.maxRows) : null,
    neighbours: draft.neighbours,
    rows: draft.neighbours === "replace" ? draft.rows : null,
    sample: draft.neighbours === "replace" ? null : draft.sample,
    columns,
    account,
    ...(draft.renews && draft.renewsDate && draft.renewsPeriod.trim()
      ? { renews: { every: draft.renews, date: draft.renewsDate, period: draft.renewsPeriod.trim() } }
      : {}),
    ...budget,
  };
}

/** The bodies of POST /datasets, one after the other: of several files each is a dataset, and the first opens the account. */
export function bodiesOf(draft) {
  if (!draft.linked) return [bodyOf(draft)];
  return asked(draft).map((table, at) => ({ ...bodyOf(draft, table), ...(at > 0 ? { epsilon: null } : {}) }));
}

/** Whether its cells are text, which can be written in several ways: those of a text file, and columns of text. */
export const textual = (holds) =>
  !["whole numbers", "integers", "real numbers", "reals", "flags", "dates"].includes(holds);

function columnDeclaration(column, holds) {
  const { kind, lower, upper, categories, comma, trim, lowercase } = column;
  const decimal = comma && textual(holds) ? { decimal: "," } : {};
  const spelling = textual(holds) ? { ...(trim ? { trim } : {}), ...(lowercase ? { lower: true } : {}) } : {};
  if (isToBeFound(column))
    return {
      unknown: UNKNOWN[kind],
      ...(kind === "reals" ? decimal : {}),
      ...(kind === "categories" ? spelling : {}),
    };
  if (kind === "integers") return { range: [parsed(lower), parsed(upper)] };
  if (kind === "reals") return { range: [parsed(lower), parsed(upper)], real: true, ...decimal };
  if (kind === "dates") return { range: [lower, upper] };
  if (kind === "categories") return { categories: coded(categoriesOf(categories), holds), ...spelling };
  return kind === "flags" ? { flags: true } : null;
}

/** Categories of a column of whole numbers are numbers; everywhere else they are text, "01" included. */
function coded(words, holds) {
  const numbers = HELD[holds] === "integers" && words.every((one) => /^-?(0|[1-9]\d{0,14})$/.test(one));
  return numbers ? words.map(Number) : words;
}
