/** Numbers, times and names as people read them. */

/** Grouped digits: `1,912`. */
export function count(n: number, locale: string): string {
  return new Intl.NumberFormat(locale).format(n);
}

/** A file's size in a unit that fits: `98.4 MB`. Decimal units, as file managers show them. */
export function size(bytes: number, locale: string): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value)} ${units[unit]}`;
}

/** How long something took: `0.1 s`, `42 s`, `3 min 5 s`. */
export function duration(ms: number, locale: string): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) {
    const number = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
    return `${number.format(seconds)} s`;
  }
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** How long is left, never more than there is: `12 min`, `1 h 5 min`, `40 s`. */
export function remaining(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} s`;
  const hours = Math.floor(minutes / 60);
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
}

/** A day and an hour as a person writes them, `2026-12-01` or `2026-12-01 09:30`, in local time; null for anything else. */
export function written(text: string): number | null {
  const parts = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2}))?$/.exec(text.trim());
  if (parts === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = parts.slice(1).map((part) => Number(part ?? 0));
  const at = new Date(year, month - 1, day, hour, minute);
  const stands = at.getMonth() === month - 1 && at.getDate() === day && hour < 24 && minute < 60;
  return stands ? at.getTime() : null;
}

/** The hour of today, or the day and the hour. */
export function moment(ms: number, locale: string, now: number): string {
  const day = (at: number) => new Date(at).toDateString();
  const hour: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const options: Intl.DateTimeFormatOptions =
    day(ms) === day(now) ? hour : { ...hour, day: "numeric", month: "short" };
  return new Intl.DateTimeFormat(locale, options).format(ms);
}

/** The time to the millisecond, as the journal shows it. */
export function instant(ms: number): string {
  const at = new Date(ms);
  const two = (n: number) => String(n).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${date} ${time}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** The ends of a digest: `9f3c51…08e1`. */
export function shortDigest(hex: string): string {
  return hex.length <= 12 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/** A path with the home folder as `~`. */
export function homely(path: string): string {
  return path.replace(/^(\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/, "~");
}
