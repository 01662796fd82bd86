/** The types of the methods, from those that openapi-typescript makes of the OpenAPI document. */

import type { ROUTES } from "./routes.js";
import type { components, paths } from "./schema.js";

/** The values that the service takes and gives, by their names in the OpenAPI document. */
export type Schemas = components["schemas"];

export interface CallOptions {
  /** Ends the call; its reason is thrown. */
  readonly signal?: AbortSignal;
  /** Longest silence of the service in an attempt, in milliseconds. */
  readonly timeout?: number;
  /** Attempts after the first. */
  readonly retries?: number;
}

/** An entry of the table of routes. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  /** The fields of an object, another value (the argument `data`), a stream of lines, or none. */
  readonly body: "" | "fields" | "data" | "lines";
  readonly answer: "json" | "lines" | "text" | "none";
  /** True if sending it twice has the effect of sending it once. */
  readonly repeatable: boolean;
  /** True if an `Idempotency-Key` makes it so. */
  readonly keyed: boolean;
  /** True if its method is the client's own, false if it is one of `admin`. */
  readonly first: boolean;
  /** The field that a bare text stands for. */
  readonly text?: string;
  readonly pages?: Pages;
}

/** How the pages of an answer follow each other. */
export interface Pages {
  readonly by: "cursor" | "last" | "offset";
  /** The field that holds a page's items (`cursor`), or an item's id (`last`). */
  readonly key: string;
  /** The parameter that asks for the next page. */
  readonly parameter: string;
}

export type Values = Readonly<Record<string, unknown>>;

type Table = typeof ROUTES;
type Name = keyof Table;
type Operation<N extends Name> = Table[N] extends { path: infer P extends keyof paths; method: infer M }
  ? M extends keyof paths[P]
    ? paths[P][M]
    : never
  : never;

type Given<O, Place extends "path" | "query"> = O extends { parameters: { readonly [_ in Place]?: infer P } }
  ? [NonNullable<P>] extends [never]
    ? unknown
    : NonNullable<P>
  : unknown;

type Json<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
type Body<N extends Name> = Table[N]["body"] extends "fields"
  ? Json<Operation<N>>
  : Table[N]["body"] extends "data"
    ? { readonly data: Json<Operation<N>> }
    : unknown;

/** The arguments of a method: the parts of the path, the query and the fields of the body, side by side. */
export type Arguments<N extends Name> = Given<Operation<N>, "path"> & Given<Operation<N>, "query"> & Body<N>;

type Responses<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201 | 202)] : never;
type Media<R> = R extends { content: infer C } ? C[keyof C] : never;

/** What a method answers. */
export type Answer<N extends Name> = [Media<Responses<Operation<N>>>] extends [never] ? undefined : Media<Responses<Operation<N>>>;

type Item<N extends Name> =
  Answer<N> extends readonly (infer I)[]
    ? I
    : Table[N] extends { pages: { key: infer K } }
      ? K extends keyof Answer<N>
        ? Answer<N>[K] extends readonly (infer I)[] | undefined
          ? I
          : never
        : never
      : never;

/** A bare text stands for the one field that a route cannot do without. */
type Text<N extends Name> = Table[N] extends { text: string } ? string : never;
type Parameters<A, T = never> = {} extends A ? [given?: A | T, options?: CallOptions] : [given: A | T, options?: CallOptions];
type Result<N extends Name> = Table[N]["answer"] extends "lines" ? AsyncGenerator<Values> : Promise<Answer<N>>;

type Plain<First extends boolean> = {
  [N in Name]: Table[N]["body"] extends "lines" ? never : Table[N]["first"] extends First ? N : never;
}[Name];
type Paged = { [N in Name]: Table[N] extends { pages: Pages } ? N : never }[Name];
type Unpaged<N extends Paged> = Omit<Arguments<N>, Table[N] extends { pages: { parameter: infer P extends string } } ? P : never>;

type Methods<First extends boolean> = {
  [N in keyof Pick<Table, Plain<First>>]: (...given: Parameters<Arguments<N>, Text<N>>) => Result<N>;
};
type Iterators<First extends boolean> = {
  [N in keyof Pick<Table, Paged & Plain<First>> as `iter${Capitalize<N>}`]: (...given: Parameters<Unpaged<N>>) => AsyncGenerator<Item<N>>;
};

/** A method for each route that people call. */
export interface Operations extends Methods<true>, Iterators<true> {}

/** A method for each other route, and for each route with pages one that iterates over all of them. */
export interface AdminOperations extends Methods<false>, Iterators<false> {}
