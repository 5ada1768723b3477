// Numbers that a statistic could have, for a picture: made from the declared shape and what is expected, never from rows.

const MOST = 24; // bars of one picture
const COUNTS = new Set(["count", "histogram", "contingency", "marginals", "ranges", "top", "cdf"]);
const SPREAD = 1.96; // a 95% error in standard deviations

/** A number from 0 to 1 that is the same for the same words. */
function fraction(words) {
  let hash = 2166136261;
  for (const letter of words) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
  return ((hash >>> 0) % 9973) / 9973;
}

const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

/** How a total is spread over cells: as is expected, bell-shaped over bands, or each a little rarer than the last. */
function shares(planned, entry, expected, labels) {
  const said = expected[[entry.by ?? entry.column ?? []].flat()[0]];
  if (said && !Array.isArray(said) && labels.every((label) => Number.isFinite(said[label])))
    return normalised(labels.map((label) => Math.max(0, said[label])));
  if (entry.kind === "histogram")
    return normalised(labels.map((_, at) => Math.exp(-(((at + 0.5) / labels.length - 0.42) ** 2) / 0.06) + 0.02));
  return normalised(labels.map((label, at) => 1 / (at + 2) + 0.3 * fraction(planned.name + label)));
}

function normalised(weights) {
  const sum = weights.reduce((all, one) => all + one, 0);
  return weights.map((one) => (sum > 0 ? one / sum : 1 / weights.length));
}

/**
 * The picture of one planned statistic: {cells: [{label, value, lower, upper}], bars, domain, more}.
 * `value` has the predicted noise, drawn anew each time; nothing where no error is known.
 */
export function madeUp({ planned, entry, schema, expected, size: known }) {
  if (!planned || !Number.isFinite(planned.error)) return null;
  const labels = planned.labels?.length ? planned.labels.slice(0, MOST).map(String) : [planned.name];
  const column = schema.find((one) => one.name === (entry.column ?? entry.target));
  const counts = COUNTS.has(entry.kind);
  const size = expected.rows ?? known ?? 10_000;
  const part = counts && planned.cells > 1 ? shares(planned, entry, expected, labels) : null;
  let running = 0;
  const truth = labels.map((label, at) => {
    if (Number.isFinite(planned.reference) && planned.cells === 1) return planned.reference;
    if (entry.kind === "cdf") {
      running += part[at];
      return planned.unit_of_error === "rows" ? running * size : running;
    }
    if (part) return part[at] * size;
    if (counts) return size / 3;
    if (Array.isArray(expected[column?.name])) return expected[column.name][0];
    if (!column || !Number.isFinite(column.lower)) return 0.3 + 0.4 * fraction(label);
    const width = column.upper - column.lower;
    const middle = column.lower + (0.3 + 0.25 * fraction(planned.name + label)) * width;
    if (entry.kind === "sum") return middle * size;
    if (entry.kind === "variance") return (width / 5) ** 2;
    return entry.kind === "std" ? width / 5 : middle;
  });
  const cells = labels.map((label, at) => {
    const error = Number.isFinite(planned.errors?.[at]) ? planned.errors[at] : planned.error;
    const drawn = truth[at] + (normal() * error) / SPREAD;
    const value = counts ? Math.max(0, drawn) : drawn;
    return { label, value, lower: counts ? Math.max(0, value - error) : value - error, upper: value + error };
  });
  const within = ["mean", "median", "quantile", "quantiles"].includes(entry.kind) && Number.isFinite(column?.lower);
  return {
    cells,
    bars: counts || entry.kind === "sum",
    domain: within ? [column.lower, column.upper] : null,
    more: Math.max(0, planned.cells - labels.length),
  };
}
