// Densities of posteriors, as points to be drawn.

const POINTS = 240;
const TAIL_SCALES = 4;

// Where posteriors can be seen together: 0 to 1 for shares; else far enough to hold their tails.
export function spanOf(posteriors) {
  if (posteriors.every(({ distribution }) => distribution.family === "beta")) return [0, 1];
  const ends = posteriors.flatMap(({ credible_interval_90: [from, to], distribution }) => {
    const margin = (to - from) * 0.6 || 0.1;
    return [Math.max(from - margin, distribution.low ?? 0), Math.min(to + margin, distribution.high ?? 1)];
  });
  return [Math.min(...ends), Math.max(...ends)];
}

// -> [[value, height], ...] rising; the highest point has the height 1.
export function curve(distribution, low, high) {
  const density = distribution.family === "beta" ? beta(distribution) : student(distribution);
  const values = Array.from({ length: POINTS + 1 }, (_, index) => low + ((high - low) * index) / POINTS);
  // A narrow peak must not fall between two points.
  const { location, scale } = distribution.family === "beta" ? spread(distribution) : distribution;
  for (let step = -TAIL_SCALES; step <= TAIL_SCALES; step += 0.1) {
    const value = location + step * scale;
    if (value > low && value < high) values.push(value);
  }
  const logs = values.sort((a, b) => a - b).map((value) => [value, density(value)]);
  const top = Math.max(...logs.map(([, log]) => log));
  return logs.map(([value, log]) => [value, Math.exp(log - top)]);
}

const spread = ({ a, b }) => ({ location: a / (a + b), scale: Math.sqrt((a * b) / ((a + b) ** 2 * (a + b + 1))) });

// Logarithms of densities without their constants.
const beta =
  ({ a, b }) =>
  (value) => {
    if (value <= 0) return a > 1 ? -Infinity : (b - 1) * Math.log1p(-value);
    if (value >= 1) return b > 1 ? -Infinity : (a - 1) * Math.log(value);
    return (a - 1) * Math.log(value) + (b - 1) * Math.log1p(-value);
  };
const student =
  ({ location, scale, degrees_of_freedom: freedom }) =>
  (value) =>
    (-(freedom + 1) / 2) * Math.log1p(((value - location) / scale) ** 2 / freedom);
