/** For tests: a page at an address, and a service that answers as it is told. */

import { cleanup, type RenderResult, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import { forgetAnswers } from "./api/client";
import { InWorkspace } from "./api/InWorkspace";
import { go } from "./state/address";

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: unknown;
}

type Answers = Readonly<Record<string, unknown>>;

/** Answers each route with its value, or with what its function returns; what is not named fails with status 404. */
export function serve(answers: Answers): readonly Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url, "http://localhost");
    const text = request.method === "GET" ? "" : await request.text();
    const one = { method: request.method, url, headers: request.headers, body: text ? JSON.parse(text) : null };
    asked.push(one);
    const found = answers[`${one.method} ${url.pathname}`];
    const answer = typeof found === "function" ? await found(one) : found;
    if (answer instanceof Response) return answer;
    if (answer === undefined) return Response.json({ detail: `no answer for ${one.method} ${url.pathname}` }, { status: 404 });
    return Response.json(answer);
  });
  return asked;
}

/** Draws a part of the panel at an address, with nothing left of the test before. */
export function draw(part: ReactNode, href = "/"): RenderResult {
  cleanup();
  forgetAnswers();
  go(href);
  return render(<InWorkspace>{part}</InWorkspace>);
}
