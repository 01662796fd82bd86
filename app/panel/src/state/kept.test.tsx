import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Notices } from "../parts/Notices";
import { useDraft } from "./draft";
import { forget, keep, keyOf, useKept } from "./kept";
import { dismiss, notify, notifyFailure } from "./notices";
import { ask, chooseTab, fillFromSubject, useSubject, useTried } from "./tried";

afterEach(cleanup);

function Draft({ name = "note" }: { readonly name?: string }) {
  const [text, set, forget] = useDraft(name, "Untouched");
  return <input aria-label="Title" value={text} onChange={(event) => set(event.target.value)} onBlur={forget} />;
}

const title = () => screen.getByLabelText<HTMLInputElement>("Title").value;

describe("a draft", () => {
  it("is there again after its form was closed, until it is sent", () => {
    render(<Draft />);
    fireEvent.change(screen.getByLabelText("Title"), { target: { value: "Half a thought" } });
    cleanup();
    render(<Draft />);
    expect(title()).toBe("Half a thought");
    fireEvent.blur(screen.getByLabelText("Title"));
    expect(title()).toBe("Half a thought");
    cleanup();
    render(<Draft />);
    expect(title()).toBe("Untouched");
  });
});

describe("drafts", () => {
  it("are told apart by their names, and gone once they are as they were", () => {
    const { rerender } = render(<Draft />);
    fireEvent.change(screen.getByLabelText("Title"), { target: { value: "Of the first" } });
    rerender(<Draft name="another note" />);
    expect(title()).toBe("Untouched");
    rerender(<Draft />);
    fireEvent.change(screen.getByLabelText("Title"), { target: { value: "Untouched" } });
    expect(window.sessionStorage.length).toBe(0);
  });
});

describe("what is kept", () => {
  const NAME = "priors-kept";
  function All() {
    return <output>{Object.keys(useKept()).join(", ")}</output>;
  }
  const all = () => screen.getByRole("status").textContent;
  afterEach(() => {
    vi.restoreAllMocks();
    window.localStorage.removeItem(NAME);
    window.dispatchEvent(new StorageEvent("storage", { key: NAME }));
  });

  it("belongs to one workspace, and adds to what another window keeps", () => {
    window.localStorage.setItem(NAME, JSON.stringify({ "south prune m1": "said" }));
    keep(keyOf("north", "prune m1"), "said");
    expect(JSON.parse(window.localStorage.getItem(NAME) ?? "")).toEqual({ "south prune m1": "said", "north prune m1": "said" });
  });

  it("follows other windows", () => {
    render(<All />);
    window.localStorage.setItem(NAME, JSON.stringify({ "south prune m1": "said" }));
    act(() => void window.dispatchEvent(new StorageEvent("storage", { key: NAME })));
    expect(all()).toBe("south prune m1");
  });

  it("is remembered by the page where the browser refuses to store it", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("full", "QuotaExceededError");
    });
    render(<All />);
    act(() => keep("north one", "said"));
    act(() => keep("north two", "said"));
    expect(all()).toBe("north one, north two");
    act(() => forget(["north one"]));
    expect(all()).toBe("north two");
  });
});

describe("a notice", () => {
  it("undoes once, the latest first, by z", async () => {
    const undone: string[] = [];
    render(<Notices />);
    act(() => {
      for (const said of ["first", "second"]) notify(said, async () => undone.push(said));
    });
    for (let times = 0; times < 3; times += 1) await act(async () => fireEvent.keyDown(document.body, { key: "z" }));
    expect(undone).toEqual(["second", "first"]);
    expect(screen.queryByText("first")).toBeNull();
  });

  it("of a failure stands once, and is not pushed out by others", () => {
    render(<Notices />);
    act(() => {
      for (let times = 0; times < 2; times += 1) notifyFailure("Nothing was saved", new Error("the service is away"));
      for (const said of ["one", "two", "three", "four"]) notify(said);
    });
    expect(screen.getAllByText("Nothing was saved: the service is away").length).toBe(1);
    expect(screen.queryByText("one")).toBeNull();
    act(() => {
      for (let id = 0; id < 20; id += 1) dismiss(id);
    });
  });
});

describe("a trial", () => {
  function Open({ text }: { readonly text: string }) {
    useSubject(text);
    return <output>{useTried().text}</output>;
  }
  const tried = () => screen.getByRole("status").textContent;

  it("begins with what is open; each tab asks the same with options of its own", () => {
    render(<Open text="the pump failed" />);
    act(fillFromSubject);
    expect(tried()).toBe("the pump failed");
    act(() => ask({ tab: "history", text: " why did it fail ", agent: "scout", option: "classic", budget: 70 }));
    act(() => chooseTab("plan"));
    expect(tried()).toBe("why did it fail");
  });

  it("begins with what was tried last where nothing is open", () => {
    render(<Open text="" />);
    act(fillFromSubject);
    expect(tried()).toBe("why did it fail");
  });
});
