import type { UseQueryResult } from "@tanstack/react-query";
import { type RefObject, useEffect, useState } from "react";
import type { SearchAnswer } from "../../api/types";
import { milliseconds } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { changeAddress } from "../../state/address";
import { useDebounced } from "../../state/debounced";

const PAUSE_MILLISECONDS = 400;
/** After the last key, before the service is asked: what it is asked is logged. */

interface Props {
  readonly input: RefObject<HTMLInputElement | null>;
  readonly text: string;
  readonly answer: UseQueryResult<SearchAnswer> | null;
}

export function SearchBox({ input, text, answer }: Props) {
  const [draft, setDraft] = useState(text);
  const settled = useDebounced(draft, PAUSE_MILLISECONDS);
  // Back, forward and links change the address: the box follows.
  useEffect(() => setDraft(text), [text]);
  useEffect(() => {
    if (settled === draft && settled !== text) changeAddress({ q: settled }, { replace: text !== "" && settled !== "" });
    // The address follows the draft once it has settled; what the address does by itself is not answered here.
  }, [settled]);
  return (
    <div className="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label="Search memories"
        placeholder="Search by words and meaning"
        value={draft}
        maxLength={2000}
        spellCheck={false}
        onChange={(event) => setDraft(event.target.value)}
      />
      {answer ? <Mode answer={answer} /> : <kbd aria-hidden>/</kbd>}
    </div>
  );
}

const MODES: Readonly<Record<string, string>> = {
  hybrid: "by words and meaning",
  lexical: "by words only",
  vector: "by meaning only",
};

function Mode({ answer: { data, isFetching } }: { readonly answer: UseQueryResult<SearchAnswer> }) {
  if (!data) return <span className="mode">{isFetching ? "Searching …" : ""}</span>;
  const reasons = data.degraded.map(({ arm, reason }) => `${arm}: ${reason}`);
  const title = [`Found ${MODES[data.mode] ?? data.mode} in ${milliseconds(data.took_ms)}`, ...reasons].join("\n");
  return (
    <span className={`mode ${reasons.length ? "degraded" : ""}`} title={title} aria-busy={isFetching}>
      {data.mode}
      <span className="visually-hidden">: {title}</span>
    </span>
  );
}
