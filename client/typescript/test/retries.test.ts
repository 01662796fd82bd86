/** The client's retries, timeouts and headers, against a server that misbehaves as told. */

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Client, ConnectionFailed, NotFound, PriorsError, ServiceFailed, Unauthorized, UnreadableAnswer } from "../src/index.js";

type Behaviour = (answer: ServerResponse) => unknown;

const OK: Behaviour = (answer) => answer.end('{"status": "ok"}');
const BROKEN: Behaviour = (answer) => answer.destroy();
const SILENT: Behaviour = () => undefined;
const failing =
  (status: number): Behaviour =>
  (answer) =>
    answer.writeHead(status, { "retry-after": "0" }).end("busy");

/** Serves these answers in turn, the last one for ever; returns a client and the headers that it sent. */
async function answering(context: TestContext, ...behaviours: Behaviour[]) {
  const heads: IncomingHttpHeaders[] = [];
  const server = createServer((request, answer) => {
    heads.push(request.headers);
    behaviours[Math.min(heads.length, behaviours.length) - 1]?.(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, heads, priors: new Client({ url, key: "ключ", workspace: "studies" }) };
}

for (const [name, failure] of Object.entries({ broken: BROKEN, 503: failing(503), 429: failing(429), 408: failing(408) })) {
  test(`what may be repeated is sent again: ${name}`, async (context) => {
    const { priors, heads } = await answering(context, failure, failure, OK);
    assert.equal((await priors.admin.health()).status, "ok");
    assert.equal(heads.length, 3);
    const sent = [heads[0]?.authorization, heads[0]?.["x-workspace"]].map((value) => Buffer.from(String(value), "latin1").toString());
    assert.deepEqual(sent, ["Bearer ключ", "studies"]);
  });
}

test("a run that may have been recorded is not sent again", async (context) => {
  for (const [failure, error] of [
    [BROKEN, ConnectionFailed],
    [failing(503), ServiceFailed],
  ] as const) {
    const { priors, heads } = await answering(context, failure, OK);
    await assert.rejects(priors.recordRun({ run_id: "r", task: "once" }), error);
    assert.equal(heads.length, 1);
  }
});

test("what was not taken is always sent again", async (context) => {
  const { priors, heads } = await answering(context, failing(429), OK);
  await priors.recordRun({ run_id: "r", task: "twice" });
  assert.equal(heads.length, 2);
});

test("the error of a block is told, also where its end cannot be stored", async (context) => {
  const { priors } = await answering(context, (answer) => answer.end("{}"), failing(503));
  const ended = new RangeError("enough");
  await assert.rejects(
    priors.run("task", {}, () => Promise.reject(ended)),
    ended,
  );
});

test("a rating has one key for all attempts", async (context) => {
  const { priors, heads } = await answering(context, BROKEN, failing(503), OK);
  await priors.rate({ memory_id: "00000000-0000-0000-0000-000000000000", rating: 1 });
  const keys = new Set(heads.map((head) => head["idempotency-key"]));
  assert.deepEqual([heads.length, keys.size, keys.has(undefined)], [3, 1, false]);
});

test("a deletion whose answer was lost is done", async (context) => {
  const session_id = "00000000-0000-0000-0000-000000000000";
  const lost = await answering(context, BROKEN, failing(404));
  assert.equal(await lost.priors.admin.deleteSession({ session_id }), undefined);
  const busy = await answering(context, failing(429), failing(404));
  await assert.rejects(busy.priors.admin.deleteSession({ session_id }), NotFound);
});

test("the attempts end with the last error", async (context) => {
  const { priors, heads } = await answering(context, failing(503));
  await assert.rejects(priors.search({ query: "x" }, { retries: 1 }), /503: busy/);
  assert.equal(heads.length, 2);
});

test("a service that is silent, away or another one is told", async (context) => {
  const { url, priors } = await answering(context, SILENT);
  await assert.rejects(priors.admin.health(undefined, { timeout: 20, retries: 0 }), (error) => {
    return error instanceof ConnectionFailed && error.message === `no answer came from ${url}: nothing came for 0.02 s`;
  });
  await assert.rejects(new Client({ url: "http://127.0.0.1:9", retries: 0 }).admin.health(), ConnectionFailed);
  const other = await answering(context, (answer) => answer.end("<html>"));
  await assert.rejects(other.priors.admin.health(), UnreadableAnswer);
  await assert.rejects(other.priors.admin.exportFeedback().next(), UnreadableAnswer);
});

test("the caller can end a call, also between its attempts", async (context) => {
  const ended = new Error("enough");
  for (const failure of [SILENT, (answer: ServerResponse) => answer.writeHead(503, { "retry-after": "10" }).end()]) {
    const { priors, heads } = await answering(context, failure);
    const ending = new AbortController();
    const call = priors.admin.health(undefined, { signal: ending.signal });
    while (heads.length === 0) await new Promise(setImmediate);
    setImmediate(() => ending.abort(ended));
    await assert.rejects(call, ended);
  }
  await assert.rejects(new Client().admin.health(undefined, { signal: AbortSignal.abort(ended) }), ended);
});

test("the refusal of a stream is told before the stream has ended", async (context) => {
  const { priors } = await answering(context, failing(401));
  async function* endless() {
    for (;;) {
      yield { kind: "note", body: "x".repeat(10_000) } as const;
      await new Promise(setImmediate);
    }
  }
  await assert.rejects(priors.storeMany(endless()), Unauthorized);
});

test("a caller that takes its time is no silence of the service", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const pause = () => context.mock.timers.tick(60_000);
  async function* slow() {
    yield { kind: "note", body: "x" } as const;
    pause();
    yield { kind: "note", body: "y" } as const;
  }
  const taking: Behaviour = (answer) => answer.req.resume().on("end", () => answer.end('{"stored": 2}'));
  assert.equal((await (await answering(context, taking)).priors.storeMany(slow())).stored, 2);
  const giving: Behaviour = (answer) => answer.end('{"line": 1}\n{"line": 2}\n');
  for await (const _ of (await answering(context, giving)).priors.admin.exportFeedback()) pause();
});

test("an error of what a stream is read from is thrown as it is", async (context) => {
  const { priors } = await answering(context, SILENT);
  async function* broken() {
    yield { kind: "note", body: "x" } as const;
    throw new RangeError("the file ended");
  }
  await assert.rejects(priors.storeMany(broken()), /^RangeError: the file ended/);
});

test("a key that no header can carry is refused without being shown", () => {
  assert.throws(
    () => new Client({ key: "secret\nkey" }),
    (error) => error instanceof PriorsError && !error.message.includes("secret"),
  );
});
