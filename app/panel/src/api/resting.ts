/** A held key runs through memories: those that are only passed by are not asked for. */

const REST_MILLISECONDS = 100;
/** Shorter than a pause between two presses, longer than between the repeats of a held key. */

let latest = { id: "", at: Number.NEGATIVE_INFINITY, until: 0 };

/** Resolves at once for a memory that is chosen by itself, and after a rest for one right behind another. */
export function rest(id: string, signal: AbortSignal): Promise<void> {
  const now = performance.now();
  if (id !== latest.id) latest = { id, at: now, until: now - latest.at < REST_MILLISECONDS ? now + REST_MILLISECONDS : now };
  if (latest.until <= now) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, latest.until - now);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
