import { useContexts, useDifference } from "../../../api/contexts";
import type { ContextSummary } from "../../../api/types";
import { exactMoment, signedWhole, whole } from "../../../parts/format";
import { OneLine } from "../../../parts/OneLine";
import { Failure, Loading } from "../../../parts/states";
import { changeAddress } from "../../../state/address";
import { nameOf, sourceLabel } from "./parts";

interface Props {
  readonly id: string;
  readonly other: string;
}

/** The choice of another context, and the way from that one to this one. */
export function Comparison({ id, other }: Props) {
  const others = (useContexts().data ?? []).filter((context) => context.id !== id);
  if (others.length === 0 && other === "") return null;
  const listed = other === "" || others.some((context) => context.id === other);
  return (
    <section aria-label="Comparison" className="comparison">
      <label>
        Compare with{" "}
        <select value={other} onChange={(event) => changeAddress({ other: event.target.value })}>
          <option value="">no other context</option>
          {!listed && <option value={other}>{other}</option>}
          {others.map((context) => (
            <option key={context.id} value={context.id}>
              {labelOf(context)}
            </option>
          ))}
        </select>
      </label>
      {other !== "" && <Difference id={other} other={id} />}
    </section>
  );
}

function labelOf({ created_at, tokens, budget, agent, session }: ContextSummary): string {
  return [exactMoment(created_at), `${whole(tokens)} of ${whole(budget)} tokens`, agent, session].filter(Boolean).join(" · ");
}

const KINDS = { added: "Only here", removed: "Only in the other", changed: "Changed" } as const;

/** The changes from the first context to the second. */
function Difference({ id, other }: Props) {
  const found = useDifference(id, other);
  if (found.isError) return <Failure what="The comparison" error={found.error} retry={found.refetch} />;
  if (!found.data) return <Loading what="the comparison" />;
  const { changes, same, tokens } = found.data;
  return (
    <>
      <p className="muted" role="status">
        {same === 1 ? "1 part is the same in both" : `${whole(same)} parts are the same in both`}; {signedWhole(tokens)} tokens here
      </p>
      <ul className="cuts" aria-label="Differences">
        {changes.map((change, place) => (
          <li key={place}>
            <strong>{KINDS[change.kind]}:</strong> <OneLine text={nameOf(change)} />{" "}
            <span className="muted">
              {sourceLabel(change.source)}, {whole(change.before)} → {whole(change.after)} tokens
              {change.reason && `: ${change.reason}`}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
