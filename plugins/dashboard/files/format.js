// Numbers, sizes and times as people read them, in the language of their browser.

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const STEPS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const NOTHING = "–";

export const number = (value) => (value == null ? NOTHING : whole.format(value));
export const compact = (value) => (value == null ? NOTHING : short.format(value));
export const decimal = (value, digits = 2) =>
  value == null ? NOTHING : value.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
// A share of 0 to 1.
export const percent = (share, digits = 0) =>
  share == null ? NOTHING : share.toLocaleString(undefined, { style: "percent", maximumFractionDigits: digits });
export const money = (cents, currency = "USD") =>
  cents == null ? NOTHING : (cents / 100).toLocaleString(undefined, { style: "currency", currency: currency.toUpperCase() });
// "1 memory", "2 memories".
export const count = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

export function bytes(size) {
  if (size == null) return NOTHING;
  const step = size < 1 ? 0 : Math.min(4, Math.floor(Math.log(size) / Math.log(1024)));
  return `${(size / 1024 ** step).toLocaleString(undefined, { maximumFractionDigits: step && size / 1024 ** step < 10 ? 1 : 0 })} ${["B", "KB", "MB", "GB", "TB"][step]}`;
}

export const datetime = (iso) => (iso ? moment.format(new Date(iso)) : NOTHING);
export const date = (iso) => (iso ? day.format(new Date(iso)) : NOTHING);

// "3 minutes ago", "in 2 days".
export function ago(iso, now = Date.now()) {
  if (!iso) return NOTHING;
  const seconds = (new Date(iso) - now) / 1000;
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

// "840 ms", "2.1 s", "4 min", "3 h", "2 d".
export function duration(ms) {
  if (ms == null) return NOTHING;
  if (ms < 1_000) return `${decimal(ms, ms < 10 ? 1 : 0)} ms`;
  if (ms < 90_000) return `${decimal(ms / 1_000, 1)} s`;
  if (ms < 5_400_000) return `${number(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${number(ms / 3_600_000)} h` : `${number(ms / 86_400_000)} d`;
}

// How long it is, in full: "45 seconds", "12 minutes", "5 hours", "2 days and 15 hours"; never less than it is.
export function span(seconds) {
  if (seconds < 90) return count(Math.ceil(seconds), "second");
  if (seconds < 5_400) return count(Math.ceil(seconds / 60), "minute");
  const hours = Math.ceil(seconds / 3_600);
  if (hours < 48) return count(hours, "hour");
  const days = count(Math.floor(hours / 24), "day");
  return hours % 24 ? `${days} and ${count(hours % 24, "hour")}` : days;
}

// "mem_06gz…e47s": long identifiers keep both ends.
export const shortened = (id, ends = 6) => (id && id.length > 2 * ends + 6 ? `${id.slice(0, ends + 4)}…${id.slice(-ends)}` : id);
