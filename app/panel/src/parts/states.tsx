/** Stand-ins for the content of a view; each says what to do. */

import type { ReactNode } from "react";

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden />
      Loading {what} …
    </p>
  );
}

/** A change that takes longer than a moment: seen after 100 ms, so that a quick one does not flicker. */
export function Working({ what }: { readonly what: string }) {
  return (
    <span className="working" role="status">
      <span className="spinner" aria-hidden />
      {what} …
    </span>
  );
}

interface FailureProps {
  readonly what: string;
  readonly error: unknown;
  readonly retry: () => unknown;
}

export function Failure({ what, error, retry }: FailureProps) {
  return (
    <div className="empty problem" role="alert">
      <h2>{what} cannot be shown</h2>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <button type="button" onClick={() => void retry()}>
        Try again
      </button>
    </div>
  );
}
