import { cleanup, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { draw, serve } from "../../testing";
import { Links } from "./Links";

afterEach(cleanup);

const ID = "00000000-0000-7000-8000-000000000001";
const OTHER = "00000000-0000-7000-8000-000000000002";

describe("the links of a memory", () => {
  it("names a turn, which has no title, by its words", async () => {
    const link = {
      relation: "mentions",
      direction: "out",
      memory_id: OTHER,
      title: "Could you check the pump …",
      kind: "message",
      weight: 1,
    };
    serve({ [`GET /api/memories/${ID}/around`]: { neighbours: [], links: [link], runs: {} } });
    draw(<Links id={ID} />, "/memory?workspace=north");
    const found = await screen.findByRole("link", { name: "Could you check the pump …" });
    expect(found.getAttribute("href")).toContain(`memory=${OTHER}`);
  });
});
