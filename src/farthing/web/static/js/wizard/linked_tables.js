// Several files of the same people: how they are called, which column leads where, and what the server is sent of them.
// Columns of all tables stand in one list, each with its table: "visits.ward".

/** What a file is called among the linked ones. */
export const tableName = (source) =>
  source
    .replace(/^.*\//, "")
    .replace(/\.[^.]*$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "_")
    .slice(0, 64);

export const tableOf = (place) => place.slice(0, place.indexOf("."));
export const columnOf = (place) => place.slice(place.indexOf(".") + 1);

/** The places of the columns of one table. */
export const placesOf = (draft, table) =>
  draft.sourceColumns.map(({ name }) => name).filter((name) => tableOf(name) === table);

/** The tables that lead elsewhere: all but the one that names the people. */
export const children = (draft) => draft.tables.map(({ name }) => name).filter((name) => name !== tableOf(draft.unit));

/** The tables that one leads to, the nearest first; as far as its keys are known. */
export function above(draft, table) {
  const path = [];
  let at = draft.keys[table]?.target;
  while (at && path.length < draft.tables.length) {
    path.push(tableOf(at));
    at = draft.keys[tableOf(at)]?.target;
  }
  return path;
}

/** The places that link tables, and so are not declared as columns. */
export function linking(draft) {
  const keys = Object.entries(draft.keys).filter(([table]) => table !== tableOf(draft.unit));
  return new Set([draft.unit, ...keys.flatMap(([table, { column, target }]) => [`${table}.${column}`, target])]);
}

/** Keys as far as the names of columns tell them: a column of the same name in a table that is linked already. */
export function guessedKeys(draft, unit, isKey) {
  const keys = {};
  const linked = [tableOf(unit)];
  for (let found = true; found; ) {
    found = false;
    for (const { name } of draft.tables.filter((one) => !linked.includes(one.name))) {
      const own = placesOf(draft, name).map(columnOf);
      const targets = linked.flatMap((table) => placesOf(draft, table)).filter((place) => isKey(columnOf(place)));
      const target = [unit, ...targets].find((place) => own.includes(columnOf(place)));
      if (!target) continue;
      keys[name] = { column: columnOf(target), target };
      linked.push(name);
      found = true;
    }
  }
  return keys;
}

/** Whether a table leads to others in a circle, and so never to a person; not while a key on its way is missing. */
function isInCircle(draft, table) {
  const path = above(draft, table);
  return path.length === draft.tables.length && !path.includes(tableOf(draft.unit));
}

/** What is missing about the links, as [{id, text}]. */
export function missingLinks(draft) {
  const whole = (value) => value === null || (Number.isInteger(value) && value >= 1 && value <= 1e6);
  return [
    !draft.unit && { id: "wizard-unit", text: "Choose the column that names the person." },
    ...children(draft).flatMap((table) => [
      !draft.keys[table]?.column && {
        id: `link-${table}-column`,
        text: `${table}: choose the column that leads to another table.`,
      },
      !draft.keys[table]?.target && { id: `link-${table}-target`, text: `${table}: choose where it leads.` },
      isInCircle(draft, table) && {
        id: `link-${table}-target`,
        text: `${table}: its rows lead in a circle and never to ${tableOf(draft.unit)}; choose another column where it leads.`,
      },
      !whole(draft.bounds[table] ?? null) && {
        id: `link-${table}-rows`,
        text: `${table}: the number of rows is a whole number from 1; leave it empty if its rows are only looked up.`,
      },
    ]),
  ];
}

/** What the dataset of one table is called. */
export const datasetOf = (draft, table) => `${draft.name.slice(0, 63 - table.length)} ${table}`;

/** The tables that can be asked about, that of the people first: each becomes a dataset. */
export const asked = (draft) =>
  draft.tables.map(({ name }) => name).sort((one, other) => above(draft, one).length - above(draft, other).length);

/** What POST /datasets is told of one table: all of them, their keys, and the columns of those that it leads to. */
export function linksOf(draft, table, columns) {
  const tables = {};
  for (const { name, source } of draft.tables) {
    const own = Object.entries(columns).filter(([place]) => tableOf(place) === name);
    const most = draft.bounds[name] ?? null;
    tables[name] = {
      source,
      columns: Object.fromEntries(own.map(([place, words]) => [columnOf(place), words])),
      ...(most === null || name === tableOf(draft.unit) ? {} : { max_rows: most }),
    };
  }
  const keys = children(draft).map((name) => [`${name}.${draft.keys[name].column}`, draft.keys[name].target]);
  const steps = above(draft, table).map((name) => ({ join: { table: name, how: "left" } }));
  return { table, tables, keys: Object.fromEntries(keys), unit: draft.unit, ...(steps.length ? { steps } : {}) };
}

/** Whom all of them protect. */
export const linkedPromise = ({ unit }) =>
  `Protects everybody named by ${unit}: the budget limits what anybody can learn about whether all of somebody's rows, in all of these files, were added or removed.`;

/** The links as sentences, for people. */
export function linkSentences(draft) {
  return children(draft).map((name) => {
    const most = draft.bounds[name] ?? null;
    const rows =
      most === null
        ? "rows are only looked up, or bounded by each statistic"
        : `at most ${most} rows of one person count`;
    return `${name}.${draft.keys[name].column} leads to ${draft.keys[name].target}; ${rows}`;
  });
}
