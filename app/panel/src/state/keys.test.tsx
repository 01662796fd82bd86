import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { usePicking } from "../parts/list";
import { useShortcuts } from "./shortcuts";
import { useStepping } from "./stepping";

afterEach(cleanup);

function press(key: string, given: KeyboardEventInit = {}): void {
  fireEvent.keyDown(document.activeElement ?? document.body, { key, bubbles: true, ...given });
}

describe("keys", () => {
  const act = vi.fn();
  function Place() {
    useShortcuts({ u: () => act("u"), j: () => act("j"), Escape: () => act("Escape") });
    return (
      <main tabIndex={-1}>
        <input aria-label="Comment" />
      </main>
    );
  }

  it("act once a press; those that step go on while they are held", () => {
    act.mockClear();
    render(<Place />);
    for (const key of ["u", "j"]) {
      press(key);
      press(key, { repeat: true });
    }
    expect(act.mock.calls.flat()).toEqual(["u", "j", "j"]);
  });

  it("are letters in a field, and nothing with a modifier or below a dialog", () => {
    act.mockClear();
    render(<Place />);
    press("u", { ctrlKey: true });
    screen.getByLabelText("Comment").focus();
    press("u");
    expect(act).not.toHaveBeenCalled();
    cleanup();
    render(
      <>
        <dialog open />
        <Place />
      </>,
    );
    press("u");
    expect(act).not.toHaveBeenCalled();
  });

  it("leave a field by Escape before anything is closed", () => {
    act.mockClear();
    render(<Place />);
    screen.getByLabelText("Comment").focus();
    press("Escape");
    expect(act).not.toHaveBeenCalled();
    expect(document.activeElement).not.toBe(screen.getByLabelText("Comment"));
    press("Escape");
    expect(act).toHaveBeenCalledWith("Escape");
  });
});

describe("a step in a list", () => {
  let step: ReturnType<typeof useStepping> = () => -1;
  function List({ ids, open }: { readonly ids: readonly string[]; readonly open: string | null }) {
    step = useStepping(ids, open);
    return null;
  }

  it("goes to the next, and stays within the list", () => {
    render(<List ids={["a", "b", "c"]} open="c" />);
    expect([step(1), step(-1)]).toEqual([2, 1]);
  });

  it("goes on from where the open one stood, once that is gone", () => {
    const { rerender } = render(<List ids={["a", "b", "c"]} open="b" />);
    rerender(<List ids={["a", "c"]} open="b" />);
    expect([step(1), step(-1)]).toEqual([1, 0]);
  });
});

describe("a selection", () => {
  it("takes all from the last one with Shift", () => {
    const choose = vi.fn();
    let pick: ReturnType<typeof usePicking> = () => new Set();
    function List() {
      pick = usePicking(["a", "b", "c", "d"], new Set(["a"]), choose);
      return null;
    }
    render(<List />);
    pick("b", false);
    pick("d", true);
    expect(choose.mock.calls.map(([chosen]) => [...chosen])).toEqual([
      ["a", "b"],
      ["a", "b", "c", "d"],
    ]);
  });
});
