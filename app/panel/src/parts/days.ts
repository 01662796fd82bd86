/** Days of the address, and the moments in UTC that the service takes for them. */

/** Returns true for a day of the calendar, which the thirtieth of February is not. */
export function isDay(text: string): boolean {
  const moment = Date.parse(startOf(text));
  return !Number.isNaN(moment) && new Date(moment).toISOString().startsWith(`${text}T`);
}

export function startOf(day: string): string {
  return `${day}T00:00:00Z`;
}

/** The service's end is exclusive, a reader's last day is not. */
export function dayAfter(day: string): string {
  return new Date(Date.parse(startOf(day)) + 24 * 60 * 60 * 1000).toISOString();
}
