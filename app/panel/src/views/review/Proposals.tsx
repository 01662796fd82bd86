import { useState } from "react";
import { useDecision, useProposals } from "../../api/proposals";
import type { Proposal } from "../../api/types";
import { day, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Empty, Failure, Loading } from "../../parts/states";
import { linkTo } from "../../state/address";

const CHANGES: Readonly<Record<string, { readonly title: string; readonly accept: string }>> = {
  merge: { title: "Merge", accept: "Merge" },
  broaden: { title: "Broader cue", accept: "Let it fire" },
  procedure: { title: "Repeated procedure", accept: "Let it fire" },
  graduate: { title: "Convention", accept: "Make it a convention" },
  retire: { title: "Idle cue", accept: "Retire" },
  stale: { title: "Contradicted cue", accept: "Replace it" },
  note: { title: "Note", accept: "Link them" },
};

/** Changes to cues that rules propose: nothing changes before a person accepts it. */
export function Proposals() {
  const found = useProposals();
  if (found.isError) return <Failure what="The list" error={found.error} retry={found.refetch} />;
  if (!found.data) return <Loading what="proposals" />;
  if (found.data.length === 0) {
    return (
      <Empty title="Nothing is proposed">
        <p>A worker looks through the cues each night. What they contradict, repeat or have become appears here.</p>
      </Empty>
    );
  }
  return (
    <>
      <p className="explanation">Rules found these. Nothing changes before you accept it, and what you accept can be undone.</p>
      <ol className="cases">
        {found.data.map((proposal) => (
          <ProposalLine key={proposal.id} proposal={proposal} />
        ))}
      </ol>
    </>
  );
}

function ProposalLine({ proposal }: { readonly proposal: Proposal }) {
  const decision = useDecision();
  const [artifact, setArtifact] = useState("");
  const { change, cue_ids: ids, target_id: target } = proposal;
  const names = CHANGES[change] ?? { title: change, accept: "Accept" };
  const needsFile = change === "graduate";
  const decide = (accept: boolean) => decision.mutate({ proposal, accept, artifact });
  return (
    <li className="case proposal">
      <div className="case-main">
        <p className="row-facts">
          <span className="kind">{names.title}</span>
          <span>{day(proposal.created_at)}</span>
          {ids.slice(0, 3).map((id, place) => (
            <Link key={id} href={linkTo("/cues", { cue: id })}>
              {ids.length > 1 ? `Cue ${whole(place + 1)}` : "Cue"}
            </Link>
          ))}
          {target && (
            <Link href={change === "note" ? linkTo("/", { memory: target }) : linkTo("/cues", { cue: target })}>
              {change === "note" ? "Note" : "New cue"}
            </Link>
          )}
        </p>
        <p dir="auto">{proposal.reason}</p>
        {needsFile && (
          <label>
            File that holds the convention <input value={artifact} onChange={(event) => setArtifact(event.target.value)} />
          </label>
        )}
        <p className="row-facts">
          <button type="button" className="primary" disabled={decision.isPending || (needsFile && !artifact.trim())} onClick={() => decide(true)}>
            {names.accept}
          </button>
          <button type="button" disabled={decision.isPending} onClick={() => decide(false)}>
            Decline
          </button>
        </p>
      </div>
    </li>
  );
}
