import type { Found } from "../../api/queries";
import { milliseconds } from "../../parts/format";
import { SearchField } from "../../parts/SearchField";

interface Props {
  readonly text: string;
  readonly answer: Found | null;
}

export function SearchBox({ text, answer }: Props) {
  return (
    <SearchField text={text} label="Search memories" placeholder="Search by words and meaning">
      {answer ? <Mode answer={answer} /> : <kbd aria-hidden>/</kbd>}
    </SearchField>
  );
}

const MODES: Readonly<Record<string, string>> = {
  hybrid: "by words and meaning",
  lexical: "by words only",
  vector: "by meaning only",
};

function Mode({ answer: { data, isFetching } }: { readonly answer: Found }) {
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
