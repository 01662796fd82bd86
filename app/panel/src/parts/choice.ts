/** What is chosen of a list. */

/** The choice with this one in it if it was not, without it if it was. */
export function toggled<T>(chosen: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const next = new Set(chosen);
  if (!next.delete(one)) next.add(one);
  return next;
}
