/** Keeps the focus in the page when its element goes away, is disabled or hidden: it moves to what surrounded the element. */

const WATCHED = { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled", "hidden"] };

let path: readonly HTMLElement[] = [];
let frame = 0;

function surroundings(element: EventTarget | null): readonly HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let at = element instanceof HTMLElement ? element : null; at; at = at.parentElement) found.push(at);
  return found;
}

function isFocusable(element: HTMLElement): boolean {
  return element.isConnected && element.hasAttribute("tabindex") && element.checkVisibility();
}

/** True where the element that had the focus is gone, disabled or hidden, and nothing has it instead. */
export function isFocusLost(): boolean {
  const [element] = path;
  const active = document.activeElement;
  if (!element || (active !== null && active !== document.body)) return false;
  return !element.isConnected || element.matches(":disabled") || !element.checkVisibility();
}

function restore(): void {
  if (!isFocusLost()) return;
  const target = path.find(isFocusable) ?? document.getElementById("main");
  target?.focus({ preventScroll: true });
}

export function keepFocus(): void {
  document.addEventListener("focusin", ({ target }) => {
    path = surroundings(target);
  });
  new MutationObserver(() => {
    cancelAnimationFrame(frame);
    // The browser takes the focus from what is disabled when it draws.
    frame = requestAnimationFrame(() => requestAnimationFrame(restore));
  }).observe(document.body, WATCHED);
}

/** Leaves a field for what surrounds it. */
export function leave(field: HTMLElement): void {
  field.blur();
  const target = surroundings(field.parentElement).find(isFocusable) ?? document.getElementById("main");
  target?.focus({ preventScroll: true });
}
