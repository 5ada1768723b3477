// From numbers to pixels, and the round numbers to write beside an axis. Nothing here draws.

const STEPS = [1, 2, 2.5, 5, 10];

/** A straight scale: `scale(value)` is a pixel, `scale.ticks` are round values inside the domain. */
export function linear([low, high], [start, end], count = 5) {
  const span = high - low || 1;
  const scale = (value) => start + ((value - low) / span) * (end - start);
  scale.ticks = roundTicks(low, high, count);
  scale.invert = (pixel) => low + ((pixel - start) / (end - start || 1)) * span;
  return scale;
}

/** A scale on which every doubling is equally wide; values must be above zero. */
export function logarithmic([low, high], [start, end], count = 6) {
  const from = Math.log10(low);
  const span = Math.log10(high) - from || 1;
  const scale = (value) => start + ((Math.log10(Math.max(value, low)) - from) / span) * (end - start);
  scale.ticks = powerTicks(low, high, count);
  scale.invert = (pixel) => 10 ** (from + ((pixel - start) / (end - start || 1)) * span);
  return scale;
}

/** About `count` round values from low to high. */
export function roundTicks(low, high, count = 5) {
  if (!(high > low) || !Number.isFinite(high - low)) return Number.isFinite(low) ? [low] : [];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = STEPS.map((part) => part * power).find((one) => one >= rough * 0.999);
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high * (1 + 1e-12) + 1e-300; number += 1) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

/** 1, 2, 5, 10, 20 ... between low and high, thinned to powers of ten where there are too many. */
export function powerTicks(low, high, count = 6) {
  if (!(low > 0) || !(high >= low) || !Number.isFinite(high)) return [];
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const digit of [1, 2, 5]) {
      const value = Number((digit * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) all.push({ value, digit });
    }
  }
  const tens = all.filter((tick) => tick.digit === 1);
  const ticks = all.length <= count ? all : tens.length >= 2 ? tens : all.filter((_, at) => at % 2 === 0);
  const every = Math.max(1, Math.ceil(ticks.length / count));
  return ticks.filter((_, at) => at % every === 0).map((tick) => tick.value);
}

/** A number short enough to stand beside an axis; a missing one is an em dash. */
export function tickText(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "—";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e9 || size < 1e-4) return value.toExponential(0).replace("e+", "e");
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(4)));
}

/** The largest and smallest finite number of many; `otherwise` where there is none. */
export function extent(values, otherwise = [0, 1]) {
  const finite = values.filter((value) => typeof value === "number" && Number.isFinite(value));
  if (finite.length === 0) return otherwise;
  return [Math.min(...finite), Math.max(...finite)];
}

/** A path through points in pixels; a missing point lifts the pen. */
export function pathOf(points) {
  let pen = "M";
  let path = "";
  for (const point of points) {
    if (!point?.every(Number.isFinite)) {
      pen = "M";
      continue;
    }
    path += `${pen}${point[0].toFixed(1)},${point[1].toFixed(1)}`;
    pen = "L";
  }
  return path;
}
