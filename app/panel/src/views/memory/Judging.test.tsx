import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { useMemory } from "../../api/queries";
import { draw, serve } from "../../testing";
import { Judging } from "./Judging";

afterEach(cleanup);

const ID = "0190f0f0-0000-7000-8000-000000000001";
const MEMORY = { id: ID, quality: 1, retired_as: null };
const FEEDBACK = `/api/memories/${ID}/feedback`;

function Open() {
  const memory = useMemory(ID).data;
  return memory ? <Judging memory={memory} {...{ decided: false }} /> : null;
}

const quality = () => document.querySelector(".quality")?.textContent;
const ratings = () => document.querySelector(".ratings")?.textContent;
const comment = () => screen.getByLabelText<HTMLInputElement>("Comment on the rating");

describe("a rating", () => {
  it("gives its comment back if it is refused", async () => {
    let answer: (response: Response) => void = () => undefined;
    serve({
      [`GET /api/memories/${ID}`]: MEMORY,
      [`GET ${FEEDBACK}`]: [],
      [`POST ${FEEDBACK}`]: () => new Promise<Response>((resolve) => (answer = resolve)),
    });
    draw(<Open />);
    await waitFor(() => expect(quality()).toBe("quality +1"));
    fireEvent.change(comment(), { target: { value: "It held up." } });
    fireEvent.keyDown(document.body, { key: "u" });
    await waitFor(() => expect(comment().value).toBe(""));
    await waitFor(() => answer(Response.json({ detail: "the database is away" }, { status: 503 })));
    await waitFor(() => expect(comment().value).toBe("It held up."));
    expect(quality()).toBe("quality +1");
  });

  it("has a key that makes a retry safe", async () => {
    window.sessionStorage.clear();
    const asked = serve({ [`GET /api/memories/${ID}`]: MEMORY, [`GET ${FEEDBACK}`]: [] });
    draw(<Open />);
    await waitFor(() => expect(quality()).toBe("quality +1"));
    fireEvent.keyDown(document.body, { key: "d" });
    await waitFor(() => expect(asked.some(({ method }) => method === "POST")).toBe(true));
    const sent = asked.find(({ method }) => method === "POST");
    expect(sent?.body).toMatchObject({ rating: -1, comment: "" });
    expect(sent?.headers.get("Idempotency-Key")).toMatch(/^[\da-f-]{36}$/);
  });

  it("of another browser appears, and stays while the service is away", async () => {
    let answer: () => unknown = () => [];
    serve({ [`GET /api/memories/${ID}`]: MEMORY, [`GET ${FEEDBACK}`]: () => answer() });
    draw(<Open />);
    await waitFor(() => expect(quality()).toBe("quality +1"));
    const rating = { feedback_id: "f1", memory_id: ID, rating: 1, comment: "", reviewer: "Ada", created_at: "2026-11-20T10:00:00Z" };
    answer = () => [{ ...rating, run_id: null, undone_at: null }];
    await waitFor(() => expect(ratings()).toContain("Ada"), { timeout: 4_000 });
    const away = vi.fn(() => Response.json({ detail: "the database is away" }, { status: 503 }));
    answer = away;
    await waitFor(() => expect(away).toHaveBeenCalled(), { timeout: 4_000 });
    expect(ratings()).toContain("Ada");
  }, 10_000);
});
