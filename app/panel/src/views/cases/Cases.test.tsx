import { cleanup, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { draw, serve } from "../../testing";
import { Cases } from "./Cases";

afterEach(cleanup);

const summary = (name: string, recurring_issues: number) => ({
  case: name,
  title: "",
  versions: 3,
  judgements: 3,
  judged_at: "2026-11-20T10:00:00Z",
  open_issues: 0,
  recurring_issues,
});
const CASES = { "GET /api/cases": [summary("tea-china", 0), summary("oat-milk", 1), summary("tea-japan", 2)] };
const titles = () => [...document.querySelectorAll(".row-title")].map((row) => row.textContent);

describe("the cases", () => {
  it("have those with the most recurring issues first", async () => {
    serve(CASES);
    draw(<Cases />, "/cases");
    await waitFor(() => expect(titles()).toEqual(["tea-japan", "oat-milk", "tea-china"]));
    expect(screen.getByText("2 recurring")).toBeTruthy();
  });

  it("have the one with the very name that is searched for first", async () => {
    serve({ "GET /api/cases": [...CASES["GET /api/cases"], summary("tea", 0)] });
    draw(<Cases />, "/cases?q=tea");
    await waitFor(() => expect(titles()).toEqual(["tea", "tea-japan", "tea-china"]));
  });

  it("are searched by a part of their name", async () => {
    serve(CASES);
    draw(<Cases />, "/cases?q=Tea");
    await waitFor(() => expect(titles()).toEqual(["tea-japan", "tea-china"]));
    expect(screen.getByText("2 of 3 cases")).toBeTruthy();
  });
});
