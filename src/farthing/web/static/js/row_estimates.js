// What somebody said about a dataset in one screen and would have to say again in another. It stays in this tab.

const key = (dataset) => `farthing.rows.${dataset}`;

/** About how many rows a dataset has, as it was last said; null where nobody said it. */
export function knownRows(dataset) {
  try {
    const rows = Number(sessionStorage.getItem(key(dataset)));
    return Number.isInteger(rows) && rows >= 1 ? rows : null;
  } catch {
    return null;
  }
}

export function rememberRows(dataset, rows) {
  try {
    if (Number.isInteger(rows) && rows >= 1) sessionStorage.setItem(key(dataset), String(rows));
    else sessionStorage.removeItem(key(dataset));
  } catch {
    // asked again, and nothing lost but convenience
  }
}
