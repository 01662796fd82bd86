/**
 * The errors of the client.
 *
 * PriorsError
 * ├── ConnectionFailed     no answer came
 * ├── UnreadableAnswer     the answer is not one of Priors; the URL may be that of another service
 * └── ProblemError         the service refused; `problem` is the document that says why
 *     ├── InvalidRequest   400, 405, 413: the request cannot be taken
 *     ├── Unauthorized     401, 403: the key is missing or wrong, or a person must do this
 *     ├── NotFound         404: there is no such thing in this workspace
 *     ├── Refused          422: it would not be worth or safe to keep; `problem.reason` says why
 *     └── ServiceFailed    408, 429, 5xx: later may help
 */

/** A problem document (RFC 9457). */
export interface Problem {
  readonly title?: string;
  readonly status: number;
  readonly detail?: string;
  readonly instance?: string;
  readonly type?: string;
  readonly request_id?: string;
  readonly errors?: readonly { readonly field: string; readonly message: string }[];
  readonly reason?: string;
  readonly findings?: readonly Readonly<Record<string, unknown>>[];
}

/** The root of the tree: catch this to catch all that the client throws on purpose. */
export class PriorsError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came: the service cannot be reached, or took longer than the timeout. */
export class ConnectionFailed extends PriorsError {}

/** The answer is not one of Priors; the URL may be that of another service, or of a page before it. */
export class UnreadableAnswer extends PriorsError {}

/** The service answered with an error. */
export class ProblemError extends PriorsError {
  readonly problem: Problem;

  constructor(problem: Problem) {
    const said = problem.detail || problem.title || `the service answered ${problem.status}`;
    const unsaid = (problem.errors ?? []).filter(({ message }) => !said.includes(message));
    super([said, ...unsaid.map(({ field, message }) => `${field}: ${message}`)].join("; "));
    this.problem = problem;
  }

  /** The status of the answer. */
  get status(): number {
    return this.problem.status;
  }
}

/** The request cannot be taken; `problem.errors` names the fields. */
export class InvalidRequest extends ProblemError {}

/** The key is missing or wrong, or a person must do this. */
export class Unauthorized extends ProblemError {}

/** There is no such thing in this workspace. */
export class NotFound extends ProblemError {}

/** It would not be worth or safe to keep; `problem.reason` and `problem.findings` say why. */
export class Refused extends ProblemError {}

/** The service, or a part that this needs, does not work; later may help. */
export class ServiceFailed extends ProblemError {}

const KINDS: Readonly<Record<number, typeof ProblemError>> = {
  401: Unauthorized,
  403: Unauthorized,
  404: NotFound,
  408: ServiceFailed,
  422: Refused,
  429: ServiceFailed,
};

/** Returns the error of an answer, also of one that comes from a proxy and has no problem document. */
export function errorOf(status: number, text: string): ProblemError {
  const kind = KINDS[status] ?? (status >= 500 ? ServiceFailed : InvalidRequest);
  return new kind(problemIn(status, text) ?? { status, detail: `the service answered ${status}: ${text.slice(0, 200)}` });
}

function problemIn(status: number, text: string): Problem | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? { ...found, status } : undefined;
  } catch {
    return undefined;
  }
}
