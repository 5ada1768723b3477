// All numbers and times are written here, in one way. A missing number is an em dash, never "NaN".

export const MISSING = "—";
const MINUS = "−";
const THIN = "\u202f"; // a narrow space that does not break

const finite = (value) => typeof value === "number" && Number.isFinite(value);

/** Privacy numbers: three significant digits. 0.1 -> "0.1", 1e-6 -> "1e-6", 12345 -> "12,300". */
export function privacy(value) {
  if (!finite(value)) return value === Infinity ? "no limit" : MISSING;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return scientific(value);
  return plain(Number(value.toPrecision(3)), 9);
}

export const epsilon = (value) => `ε${THIN}${privacy(value)}`;
/** What is charged: something is never told as nothing. A cost of 0 is one that delta alone covers. */
export const charged = (value) => (value === 0 ? `ε${THIN}under 1e${MINUS}9` : epsilon(value));
export const delta = (value) => `δ${THIN}${privacy(value)}`;

/** A number in the data's own units: as many digits as its error makes sensible, thousands separated. */
export function amount(value, error = null) {
  if (!finite(value)) return MISSING;
  if (finite(error) && error > 0) {
    const decimals = Math.min(9, Math.max(0, 1 - Math.floor(Math.log10(error))));
    return plain(Number(value.toFixed(decimals)), decimals);
  }
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return scientific(value);
  return size >= 1000 ? plain(Math.round(value), 0) : plain(Number(value.toPrecision(3)), 9);
}

/** An error: three significant digits, never rounded down. 0.9213 -> "±0.922", 1234.2 -> "±1,240". */
export function plusMinus(value) {
  if (!finite(value)) return MISSING;
  if (value === 0) return "±0";
  const power = Math.floor(Math.log10(Math.abs(value))) - 2;
  const steps = Math.abs(value) / 10 ** power;
  const up = Number(`${Math.ceil(steps * (1 - 1e-12))}e${power}`); // 0.3 is told as 0.3, whatever its last bit says
  return "±" + (up < 1e-4 || up >= 1e15 ? scientific(up) : plain(up, 9));
}

/** A share already in percent: 4.31 -> "4.3%". */
export function percent(value) {
  if (!finite(value)) return MISSING;
  const size = Math.abs(value);
  if (size >= 1000) return plain(Math.round(value), 0) + "%";
  if (size !== 0 && size < 0.01) return "under 0.01%";
  return plain(Number(value.toPrecision(2)), 6) + "%";
}

/** A percentage that must not be understated: three digits, rounded up. 73.106 -> "73.2%". */
export function percentAtMost(value) {
  if (!finite(value)) return MISSING;
  const unit = value > 0 ? 10 ** Math.max(-2, Math.floor(Math.log10(value)) - 2) : 1;
  return plain(Number((Math.ceil(value / unit) * unit).toPrecision(6)), 6) + "%";
}

/** A whole number with separators. */
export const count = (value) => (finite(value) ? plain(Math.round(value), 0) : MISSING);

/** "1 row", "3 rows". */
export const plural = (value, one, many = one + "s") => `${count(value)} ${value === 1 ? one : many}`;

/** Nanoseconds since 1970 or an ISO text -> "16 Nov 2026, 19:41". */
export function moment(when) {
  if (when === null || when === undefined) return MISSING;
  const date =
    typeof when === "number" ? new Date(when > 1e15 ? when / 1e6 : when > 1e12 ? when : when * 1000) : new Date(when);
  if (Number.isNaN(date.getTime())) return MISSING;
  return date.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** What to say of a comma: half of the world reads 1,000 as one, the other half as a thousand. */
export const COMMA = "A thousand is 1000, a half is 0.5.";

/** The number a person typed, or null: "1,5e-3" and "abc" are null, "1 000" is 1000. */
export function parsed(text) {
  const trimmed = String(text ?? "")
    .trim()
    .replace(/[\s\u202f_]/g, "")
    .replace(MINUS, "-");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return null;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : null;
}

/** "a, b and c". */
export function listText(words) {
  return words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);
}

function scientific(value) {
  const [digits, power] = value.toExponential(2).split("e");
  return signed(String(Number(digits))) + "e" + signed(String(Number(power)));
}

const formatters = new Map(); // making a formatter takes longer than using it a hundred times

function plain(value, decimals) {
  if (!formatters.has(decimals))
    formatters.set(decimals, new Intl.NumberFormat("en-US", { maximumFractionDigits: decimals }));
  return signed(formatters.get(decimals).format(value));
}

const signed = (text) => text.replace("-", MINUS).replace(/^−0$/, "0");
