import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { changeAddress, useAddress } from "../state/address";
import { draw, serve } from "../testing";
import { SearchField } from "./SearchField";

afterEach(cleanup);

function Place() {
  const text = useAddress().params.get("q") ?? "";
  return <SearchField text={text} label="Search" placeholder="" pause={10} />;
}

const field = () => screen.getByLabelText<HTMLInputElement>("Search");

describe("a search", () => {
  it("stands in the address once the reader pauses, and follows it", async () => {
    serve({});
    draw(<Place />, "/memory?workspace=north");
    fireEvent.change(field(), { target: { value: "pump" } });
    expect(window.location.search).toBe("?workspace=north");
    await waitFor(() => expect(window.location.search).toBe("?workspace=north&q=pump"));
    act(() => changeAddress({ q: null }));
    expect(field().value).toBe("");
  });
});
