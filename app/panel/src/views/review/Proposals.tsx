import { useEffect, useRef, useState } from "react";
import { useCue } from "../../api/cues";
import { useMemory } from "../../api/memories";
import { useDecision, useProposals } from "../../api/proposals";
import type { Proposal } from "../../api/types";
import { capitalised, day, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { OneLine } from "../../parts/OneLine";
import { Empty, Failure, Loading } from "../../parts/states";
import { linkTo } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { Kind } from "../cues/CueFacts";
import { focusNext, lineOf, nextAfter, useCurrent } from "./current";

/** The name of each change, the button that accepts it, and what its target is. */
const CHANGES: Readonly<Record<string, { readonly title: string; readonly accept: string; readonly target: string }>> = {
  merge: { title: "Merge", accept: "Merge", target: "Into" },
  broaden: { title: "Broader cue", accept: "Let it fire", target: "Proposed" },
  procedure: { title: "Repeated procedure", accept: "Let it fire", target: "Proposed" },
  candidate: { title: "Possible lesson", accept: "Let it fire", target: "Said" },
  graduate: { title: "Convention", accept: "Make it a convention", target: "" },
  retire: { title: "Idle cue", accept: "Retire", target: "" },
  stale: { title: "Contradicted cue", accept: "Replace it", target: "Newer" },
  harmful: { title: "Harmful memory", accept: "Delete", target: "" },
  note: { title: "Note", accept: "Link them", target: "Note" },
};
const AT_FIRST = 20;
const CUES_SHOWN = 3;

/** Changes to cues that rules propose: nothing changes before a person accepts it. */
export function Proposals() {
  const found = useProposals();
  const [shown, setShown] = useState(AT_FIRST);
  if (found.isError && !found.data) return <Failure what="The list" error={found.error} retry={found.refetch} />;
  if (!found.data) return <Loading what="proposals" />;
  if (found.data.length === 0) {
    return (
      <Empty title="Nothing is proposed">
        <p>A worker checks the cues each night. Duplicates, contradicted and idle cues, and possible conventions then appear here.</p>
      </Empty>
    );
  }
  return (
    <>
      <p className="explanation">Rules found these. Nothing changes before you accept it. You can undo each decision.</p>
      <Listed proposals={found.data.slice(0, shown)} />
      {shown < found.data.length && (
        <button type="button" className="quiet more" onClick={() => setShown(shown + AT_FIRST)}>
          Show more
        </button>
      )}
    </>
  );
}

function Listed({ proposals }: { readonly proposals: readonly Proposal[] }) {
  const ids = proposals.map(({ id }) => id);
  const [current, move] = useCurrent(ids);
  const decision = useDecision();
  useShortcuts({ j: () => move(1), k: () => move(-1) });
  const decide = (proposal: Proposal, accept: boolean, artifact: string) => {
    const next = nextAfter(ids, [proposal.id]);
    decision.mutate({ proposal, accept, artifact }, { onSuccess: () => requestAnimationFrame(() => focusNext(next)) });
  };
  return (
    <ol className="cases">
      {proposals.map((proposal) => (
        <ProposalLine
          key={proposal.id}
          proposal={proposal}
          current={proposal.id === current}
          deciding={decision.isPending}
          decide={(accept, artifact) => decide(proposal, accept, artifact)}
        />
      ))}
    </ol>
  );
}

interface LineProps {
  readonly proposal: Proposal;
  readonly current: boolean;
  /** True while a decision is sent. */
  readonly deciding: boolean;
  /** Takes the decision, with the file that holds the convention that a cue becomes. */
  readonly decide: (accept: boolean, artifact: string) => void;
}

function ProposalLine({ proposal, current, deciding, decide }: LineProps) {
  const line = useRef<HTMLLIElement>(null);
  const [artifact, setArtifact] = useState("");
  const { id, change, cue_ids: cues, target_id: target } = proposal;
  const names = CHANGES[change] ?? { title: change, accept: "Accept", target: "With" };
  const needsFile = change === "graduate";
  useEffect(() => {
    if (current) line.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <li ref={line} id={lineOf(id)} className={`case proposal ${current ? "current" : ""}`} aria-current={current ? "true" : undefined}>
      <div className="case-main">
        <p className="row-facts">
          <span className="kind">{names.title}</span>
          <time dateTime={proposal.created_at}>{day(proposal.created_at)}</time>
        </p>
        <p dir="auto">{capitalised(proposal.reason)}</p>
        <ul className="proposed-cues">
          {cues.slice(0, CUES_SHOWN).map((cue) => (change === "harmful" ? <MemoryLine key={cue} id={cue} /> : <CueLine key={cue} id={cue} />))}
          {cues.length > CUES_SHOWN && <li className="muted">and {whole(cues.length - CUES_SHOWN)} more</li>}
          {target && change !== "note" && <CueLine id={target} label={names.target} />}
          {target && change === "note" && (
            <li>
              <Link href={linkTo("/", { memory: target })}>Open the note</Link>
            </li>
          )}
        </ul>
        {needsFile && (
          <label>
            File that holds the convention <input value={artifact} onChange={(event) => setArtifact(event.target.value)} />
          </label>
        )}
        <p className="note-actions">
          <button type="button" className="primary" disabled={deciding || (needsFile && !artifact.trim())} onClick={() => decide(true, artifact.trim())}>
            {names.accept}
          </button>
          <button type="button" disabled={deciding} onClick={() => decide(false, "")}>
            Decline
          </button>
        </p>
      </div>
    </li>
  );
}

/** The memory of the proposal by its title, as soon as that is loaded. */
function MemoryLine({ id }: { readonly id: string }) {
  const { data: memory } = useMemory(id);
  return (
    <li>
      <Link href={linkTo("/", { memory: id })}>
        <OneLine text={memory?.title || memory?.body || "A memory"} />
      </Link>
    </li>
  );
}

/** A cue of the proposal by its lesson, as soon as that is loaded. */
function CueLine({ id, label }: { readonly id: string; readonly label?: string }) {
  const { data: cue } = useCue(id);
  return (
    <li>
      {label && <span className="muted">{label}: </span>}
      {cue && <Kind kind={cue.kind} />}{" "}
      <Link href={linkTo("/cues", { cue: id })}>
        <OneLine text={cue?.lesson ?? "A cue"} />
      </Link>
    </li>
  );
}
