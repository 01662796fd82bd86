const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});
const WHOLE = new Intl.NumberFormat("en-GB");
const COUNTED = 10_001;
/** The largest count that the service gives; it stands for all larger ones. */

export function day(moment: string): string {
  return DAY.format(new Date(moment));
}

export function exactMoment(moment: string): string {
  return `${MOMENT.format(new Date(moment))} UTC`;
}

export function whole(value: number): string {
  return WHOLE.format(value);
}

/** The text with a minus sign in place of a hyphen before a number; dates and names keep theirs. */
export function withMinus(text: string): string {
  return text.replace(/(?<![\w-])-(?=\d)/g, "−");
}

export function decimal(value: number, digits: number): string {
  return withMinus(value.toFixed(digits));
}

export function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export function counted(total: number, one: string, many: string): string {
  if (total === COUNTED) return `more than ${whole(COUNTED - 1)} ${many}`;
  return `${whole(total)} ${total === 1 ? one : many}`;
}

export function several(count: number): string {
  return count === 1 ? "1 memory" : `${whole(count)} memories`;
}

export function times(count: number): string {
  return count === 1 ? "once" : `${whole(count)} times`;
}

export function signed(quality: number): string {
  if (quality === 0) return "0";
  return quality > 0 ? `+${quality}` : `−${-quality}`;
}

/** A file's name and its folder: what tells sources apart in a narrow column. */
export function shortPath(uri: string): string {
  return uri.split("/").slice(-2).join("/");
}

const SIZES = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

export function bytes(count: number): string {
  const power = Math.min(SIZES.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
  const style = { style: "unit", unit: SIZES[power], maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat("en-GB", style).format(count / 1000 ** power).replace("byte", "B");
}

export function milliseconds(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${whole(Math.round(value))} ms`;
}

const COST_DIGITS = 2;

/** Without a currency, because runs name none; small costs keep two digits that tell them apart. */
export function money(value: number): string {
  if (value === 0) return "0.00";
  const digits = Math.max(COST_DIGITS, COST_DIGITS - 1 - Math.floor(Math.log10(Math.abs(value))));
  return decimal(value, Math.min(12, digits));
}

const SECOND = 1000;
const MINUTE = 60;

/** A length of time in milliseconds, in the two largest of its units. */
export function duration(value: number): string {
  const seconds = Math.round(value / SECOND);
  if (seconds < MINUTE) return value < 10 * SECOND ? `${(value / SECOND).toFixed(1)} s` : `${seconds} s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes < MINUTE) return seconds % MINUTE ? `${minutes} min ${seconds % MINUTE} s` : `${minutes} min`;
  return `${whole(Math.floor(minutes / MINUTE))} h ${minutes % MINUTE} min`;
}

export function share(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** The parts of a text, without those that are empty. */
export function partsOf(text: string, separator: string): readonly string[] {
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter(Boolean);
}
