/** The client: it sends requests, again where that is safe, and reads their answers. */

import { ConnectionFailed, errorOf, NotFound } from "./errors.js";
import { addressOf, bodyOf, decoded, headerValue, paged } from "./requests.js";
import { mayBeTaken, pauseAfter, pauseWithoutAnswer, wasNotSent } from "./retries.js";
import { ROUTES } from "./routes.js";
import { Run, type RunOptions } from "./run.js";
import type { AdminOperations, Answer, CallOptions, Operations, Pages, Route, Schemas, Values } from "./types.js";
import { Watch } from "./watch.js";

/** Characters of a piece of a stream of lines, about. */
const PIECE = 65_536;

export interface ClientOptions extends Omit<CallOptions, "signal"> {
  readonly url?: string;
  readonly key?: string;
  readonly workspace?: string;
}

/** The table of routes gives the classes these methods, below. */
export interface Client extends Operations {}
interface Admin extends AdminOperations {}

/** The methods of the routes that are not the client's own. */
class Admin {
  constructor(readonly client: Client) {}
}

/** A client of one service and workspace. It may be shared. */
export class Client {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #options: Required<Omit<CallOptions, "signal">>;
  /** The methods of all other routes: lists, changes and deletions, keys, the service's state. */
  readonly admin: AdminOperations = new Admin(this);

  /** `timeout` is 30,000 milliseconds and `retries` 3, unless given; a call's own options go before. */
  constructor({ url = "http://127.0.0.1:8000", key = "", workspace = "", timeout = 30_000, retries = 3 }: ClientOptions = {}) {
    this.#url = new URL(url).href.replace(/\/+$/, "");
    this.#headers = {
      ...(key ? { authorization: headerValue("key", `Bearer ${key}`) } : {}),
      ...(workspace ? { "x-workspace": headerValue("workspace", workspace) } : {}),
    };
    this.#options = { timeout, retries };
  }

  /**
   * Runs a block as a run: it is recorded at its beginning, what it asks for is logged under its id, and its end is stored.
   * A block that throws ends the run with the error; the error is thrown again.
   */
  async run<T>(task: string, options: RunOptions, block: (run: Run) => Promise<T>): Promise<T> {
    const run = new Run(this, task, options);
    await run.begin();
    let result: T;
    try {
      result = await block(run);
    } catch (error) {
      // The block's own error is told, also where the service cannot be told of it.
      await run.end(error).catch(() => undefined);
      throw error;
    }
    await run.end();
    return result;
  }

  /**
   * Stores many memories, which are read and sent as a stream. A stream that broke off is not sent again.
   * `rejected` of the answer names the single ones that the service did not take.
   */
  async storeMany(
    memories: Iterable<Schemas["NewMemory"]> | AsyncIterable<Schemas["NewMemory"]>,
    { wait, ...options }: CallOptions & { readonly wait?: boolean } = {},
  ): Promise<Answer<"storeMany">> {
    const route = ROUTES.storeMany;
    const watch = new Watch({ ...this.#options, ...options });
    const source = new Source(memories, watch);
    const headers = { "content-type": "application/x-ndjson" };
    try {
      const init = { method: "POST", headers, body: ReadableStream.from(source.pieces()), duplex: "half" } as const;
      const answer = await this.#fetch(addressOf(route, { wait }), init, watch);
      return (await read(route, answer)) as Answer<"storeMany">;
    } catch (error) {
      throw source.failure === undefined ? this.#told(error, watch) : source.failure;
    } finally {
      watch.end();
    }
  }

  /** Sends a request, again where that is safe, and reads its answer. */
  async send(route: Route, given: Values = {}, options: CallOptions = {}): Promise<unknown> {
    const { retries, ...watched } = { ...this.#options, ...options };
    const address = addressOf(route, given);
    const init = initOf(route, given);
    let mayBeDone = false;
    for (let attempt = 0; ; attempt += 1) {
      const watch = new Watch(watched);
      let pause: number | undefined;
      try {
        const answer = await this.#fetch(address, init, watch);
        pause = attempt < retries ? pauseAfter(route, answer, attempt) : undefined;
        if (pause === undefined) return await read(route, answer);
        mayBeDone ||= mayBeTaken(answer);
        await answer.body?.cancel();
      } catch (error) {
        // The first attempt deleted it, and its answer was lost.
        if (mayBeDone && error instanceof NotFound && route.method === "delete" && route.answer === "none") return undefined;
        pause = watch.passed(error) && attempt < retries ? pauseWithoutAnswer(route, error, attempt) : undefined;
        if (pause === undefined) throw this.#told(error, watch);
        mayBeDone ||= !wasNotSent(error);
      } finally {
        watch.end();
      }
      await watch.sleep(pause);
    }
  }

  /** Yields the items of page after page. */
  async *each(route: Route & { readonly pages: Pages }, given: Values = {}, options: CallOptions = {}): AsyncGenerator<Values> {
    let next: unknown;
    do {
      const answer = await this.send(route, next === undefined ? given : { ...given, [route.pages.parameter]: next }, options);
      const [items, following] = paged(route.pages, answer, next);
      yield* items;
      next = following;
    } while (next !== undefined);
  }

  /** Yields the lines of an answer as they come. */
  async *lines(route: Route, given: Values = {}, options: CallOptions = {}): AsyncGenerator<Values> {
    const watch = new Watch({ ...this.#options, ...options });
    try {
      const answer = await this.#fetch(addressOf(route, given), initOf(route, given), watch);
      if (!answer.ok) throw errorOf(answer.status, await answer.text());
      for await (const line of linesOf(answer, watch)) yield decoded(line) as Values;
    } catch (error) {
      throw this.#told(error, watch);
    } finally {
      watch.end();
    }
  }

  #fetch(address: string, init: RequestInit, watch: Watch): Promise<Response> {
    const headers = { ...this.#headers, ...(init.headers as Record<string, string>) };
    return fetch(this.#url + address, { ...init, headers, signal: watch.signal, redirect: "manual" });
  }

  /** Returns the error that is thrown for one of `fetch`. */
  #told(error: unknown, watch: Watch): unknown {
    if (!watch.passed(error)) return error;
    const said = (error as Error).cause instanceof Error ? ((error as Error).cause as Error).message : (error as Error).message;
    return new ConnectionFailed(`no answer came from ${this.#url}: ${said}`, { cause: error });
  }
}

for (const [name, route] of Object.entries<Route>(ROUTES)) {
  if (route.body === "lines") continue;
  define(name, route, (client, given, options) =>
    route.answer === "lines" ? client.lines(route, given, options) : client.send(route, given, options),
  );
  const { pages } = route;
  if (!pages) continue;
  define(`iter${name.charAt(0).toUpperCase()}${name.slice(1)}`, route, (client, given, options) =>
    client.each({ ...route, pages }, given, options),
  );
}

function define(name: string, route: Route, call: (client: Client, given?: Values, options?: CallOptions) => unknown): void {
  const value = function (this: Client | Admin, given?: Values | string, options?: CallOptions): unknown {
    const fields = typeof given === "string" && route.text ? { [route.text]: given } : (given as Values | undefined);
    return call(this instanceof Client ? this : this.client, fields, options);
  };
  const owner = route.first ? Client : Admin;
  Object.defineProperty(owner.prototype, name, { value, configurable: true, writable: true });
}

function initOf(route: Route, given: Values): RequestInit {
  const body = bodyOf(route, given);
  const headers = {
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(route.keyed ? { "idempotency-key": crypto.randomUUID() } : {}),
  };
  return { method: route.method.toUpperCase(), headers, ...(body === undefined ? {} : { body }) };
}

async function read(route: Route, answer: Response): Promise<unknown> {
  const text = await answer.text();
  if (!answer.ok) throw errorOf(answer.status, text);
  if (route.answer === "text") return text;
  return route.answer === "none" ? undefined : decoded(text);
}

/** What a stream is read from: an error of its own is told as it is, and not as one of the connection. */
class Source {
  failure: unknown;

  constructor(
    readonly items: Iterable<unknown> | AsyncIterable<unknown>,
    readonly watch: Watch,
  ) {}

  /** Yields JSON lines in pieces. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    let piece = "";
    try {
      this.watch.rest();
      for await (const item of this.items) {
        piece += `${JSON.stringify(item)}\n`;
        if (piece.length < PIECE) continue;
        this.watch.again();
        yield new TextEncoder().encode(piece);
        this.watch.rest();
        piece = "";
      }
    } catch (error) {
      this.failure = error;
      throw error;
    }
    this.watch.again();
    if (piece) yield new TextEncoder().encode(piece);
  }
}

async function* linesOf(answer: Response, watch: Watch): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of answer.body ?? []) {
    watch.rest();
    const whole = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split("\n");
    rest = whole.pop() ?? "";
    yield* whole;
    watch.again();
  }
  if (rest) yield rest;
}
