import { useAround } from "../../api/queries";
import type { MemoryUses, MemoryView } from "../../api/schema";
import { excerptOf } from "../../parts/excerpt";
import { day, shortPath, times } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Score, Verdict } from "../../parts/marks";
import { Unshown } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";
import { OneLine } from "../../parts/text";
import { linkTo, linkToMemory } from "../../state/address";

const COLUMNS: readonly Column<MemoryUses["given_to"][number]>[] = [
  {
    name: "Run",
    cell: ({ run_id, task }) => (
      <Link href={linkTo("/runs", { run: run_id })} title={task ?? undefined}>
        {run_id}
      </Link>
    ),
  },
  { name: "Agent", kind: "extra", cell: ({ agent }) => agent },
  { name: "Rank", kind: "number", cell: ({ rank }) => rank },
  { name: "Score", kind: "number", cell: ({ final_score }) => <Score value={final_score} /> },
  { name: "Verdict", cell: ({ verdict }) => <Verdict value={verdict} /> },
  { name: "Given on", cell: ({ given_at }) => <time dateTime={given_at}>{day(given_at)}</time> },
];

/** The memory's source, with the memories around it. */
export function Place({ memory }: { readonly memory: MemoryView }) {
  const found = useAround(memory.id);
  const { source } = memory;
  if (!source) return null;
  const around = [...(found.data?.neighbours ?? []), memory].sort((one, other) => (one.ordinal ?? 0) - (other.ordinal ?? 0));
  return (
    <section>
      <h3>Source</h3>
      <p className="source">
        <Link href={linkTo("/memory", { source: source.uri })} title="Show all memories from this source">
          {source.title || shortPath(source.uri)}
        </Link>{" "}
        <span className="muted">{source.kind}</span>
      </p>
      <Unshown what="The neighbours" query={found} />
      {around.length > 1 && (
        <ol className="neighbours" aria-label="Neighbours in the source">
          {around.map((one) => (
            <li key={one.id}>
              <span className="ordinal">{one.ordinal ?? ""}</span>
              {one.id === memory.id ? (
                <strong aria-current="true">
                  <Line memory={one} />
                </strong>
              ) : (
                <Link href={linkToMemory(one.id)}>
                  <Line memory={one} />
                </Link>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** A neighbour's own heading and the beginning of its text: neighbours often share a title. */
function Line({ memory: { title, body } }: { readonly memory: MemoryView }) {
  if (!title) return <OneLine text={excerptOf(body, "", [])} />;
  const own = title.slice(title.lastIndexOf(" › ") + 1).replace(/^› /, "");
  return (
    <>
      <OneLine text={own} /> <span className="above">{excerptOf(body, title, [])}</span>
    </>
  );
}

/** The run that made it, and those that it was given to. */
export function Chain({ memory }: { readonly memory: MemoryView }) {
  const found = useAround(memory.id);
  return (
    <section>
      <h3>Runs</h3>
      <Unshown what="The runs" query={found} />
      {found.data && <Runs uses={found.data.runs} />}
    </section>
  );
}

function Runs({ uses: { made_by, said_by: also, given_to, uses: used } }: { readonly uses: MemoryUses }) {
  const said_by = [...new Set([made_by, ...also.map(({ run_id }) => run_id)])].filter((run): run is string => Boolean(run));
  return (
    <>
      <p>
        {said_by.length > 0 && "Made by "}
        {said_by.map((run, place) => (
          <span key={place}>
            {place > 0 && ", "}
            <Link href={linkTo("/runs", { run })}>{run}</Link>
          </span>
        ))}
        {said_by.length > 0 && ". "}
        {given_to.length === 0
          ? "Not given to any run yet."
          : `Given ${times(given_to.length)}${used ? `, used in outputs ${times(used)}` : ""}.`}
      </p>
      {given_to.length > 0 && (
        <Table
          label="Runs that were given this memory"
          columns={COLUMNS}
          rows={given_to}
          keyOf={({ recall_id, rank }) => `${recall_id} ${rank}`}
        />
      )}
    </>
  );
}
