import { describe, expect, it } from "vitest";
import { keepKey } from "../state/session";
import { serve } from "../testing";
import { answerOf, serviceIn } from "./client";

const ID = "0190f0f0-0000-7000-8000-000000000001";
const { ask } = serviceIn("north");

describe("a request", () => {
  it("names its workspace and its key, and a reviewer only where it changes something", async () => {
    keepKey("secret");
    const asked = serve({ "GET /api/cases": [], "POST /api/search": {}, "PATCH /api/memories": { changed: [], missing: [] } });
    await ask.GET("/api/cases");
    await ask.POST("/api/search", { body: { query: "pump" } });
    await ask.PATCH("/api/memories", { body: { ids: [ID], state: "deleted" } });
    expect(asked.map(({ headers }) => headers.get("X-Workspace"))).toEqual(["north", "north", "north"]);
    expect(asked[0]?.headers.get("Authorization")).toBe("Bearer secret");
    expect(asked.map(({ headers }) => headers.has("X-Reviewer"))).toEqual([false, false, true]);
  });

  it("leaves out what is empty, and repeats the name of a list", async () => {
    const asked = serve({ "GET /api/memories": { memories: [], next: null, total: 0 } });
    await ask.GET("/api/memories", { params: { query: { tag: ["a", "b"], user: "", verdict: [], cursor: null } } });
    expect(asked[0]?.url.search).toBe("?tag=a&tag=b");
  });

  it("takes what was asked before its code was there, once and in the same workspace", async () => {
    const asked = serve({ "GET /api/cases": [] });
    const first = { url: new URL("/api/cases", window.location.href).href, answer: Promise.resolve(Response.json(["first"])) };
    window.first = { ...first, workspace: "south" };
    expect((await ask.GET("/api/cases")).data).toEqual([]);
    window.first = { ...first, workspace: "north" };
    expect((await ask.GET("/api/cases")).data).toEqual(["first"]);
    expect((await ask.GET("/api/cases")).data).toEqual([]);
    expect(asked).toHaveLength(2);
  });

  it("keeps the slashes of a session's id, and no others", async () => {
    const asked = serve({ "GET /api/sessions/logs/one.md": {}, "GET /api/runs/a%2Fb": {} });
    await ask.GET("/api/sessions/{session_id}", { params: { path: { session_id: "logs/one.md" } } });
    await ask.GET("/api/runs/{run_id}", { params: { path: { run_id: "a/b" } } });
    expect(asked.map(({ url }) => url.pathname)).toEqual(["/api/sessions/logs/one.md", "/api/runs/a%2Fb"]);
  });

  it("is not sent for an id that is none, or for a workspace that none can have", async () => {
    const asked = serve({});
    const memory = ask.GET("/api/memories/{memory_id}", { params: { path: { memory_id: "facets" } } });
    for (const session_id of ["..", "../memories", "logs/./one.md", "logs/.."]) {
      const session = ask.GET("/api/sessions/{session_id}", { params: { path: { session_id } } });
      await expect(session).rejects.toMatchObject({ status: 404, message: "there is no such session" });
    }
    await expect(memory).rejects.toMatchObject({ status: 404, message: "there is no memory facets" });
    await expect(serviceIn("д").ask.GET("/api/cases")).rejects.toThrow("д is not a valid workspace name");
    expect(asked).toEqual([]);
  });

  it("fails with what the service says, or says that the service cannot be reached", async () => {
    serve({ "GET /api/cases": () => Response.json({ detail: "the database is away" }, { status: 503 }) });
    await expect(answerOf(ask.GET("/api/cases"))).rejects.toMatchObject({ status: 503, message: "the database is away" });
    serve({
      "GET /api/cases": () => {
        throw new TypeError("Failed to fetch");
      },
    });
    await expect(ask.GET("/api/cases")).rejects.toMatchObject({ status: 0, message: "the service cannot be reached" });
  });
});
