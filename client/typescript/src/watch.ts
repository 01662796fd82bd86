/** Ends an attempt when its caller wants that, or the service is silent for too long. */

import { PriorsError } from "./errors.js";
import type { CallOptions } from "./types.js";

export class Watch {
  readonly #ending = new AbortController();
  readonly #given: AbortSignal | undefined;
  readonly #timeout: number;
  #ended = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ signal, timeout = Infinity }: CallOptions) {
    this.#given = signal;
    this.#timeout = timeout;
    signal?.throwIfAborted();
    signal?.addEventListener("abort", this.#stop);
    this.again();
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Notes that something came or went: the timeout begins anew. */
  again(): void {
    clearTimeout(this.#timer);
    if (this.#ended || this.#timeout === Infinity) return;
    this.#timer = setTimeout(() => this.#ending.abort(new Error(`nothing came for ${this.#timeout / 1000} s`)), this.#timeout);
  }

  /** Notes that the caller is at work: until `again`, its time is no silence of the service. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#stop);
  }

  /** Tells whether an error is one of the connection, which may pass, and not the caller's will or an answer. */
  passed(error: unknown): boolean {
    return !this.#given?.aborted && !(error instanceof PriorsError);
  }

  /** Waits so many milliseconds, unless the caller ends the call. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stopped = () => {
        clearTimeout(timer);
        reject(this.#given?.reason);
      };
      const timer = setTimeout(() => {
        this.#given?.removeEventListener("abort", stopped);
        resolve();
      }, milliseconds);
      if (this.#given?.aborted) stopped();
      else this.#given?.addEventListener("abort", stopped, { once: true });
    });
  }

  readonly #stop = (): void => this.#ending.abort(this.#given?.reason);
}
