import type { ReactNode } from "react";
import { useDecision } from "../../api/acts";
import type { ProposalView } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { DetailPane, PaneTitle } from "../../parts/pane";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useDraft } from "../../state/draft";
import { CaseDetail } from "../cases/CaseDetail";
import { CueDetail } from "../memory/cue/CueDetail";
import { Detail } from "../memory/Detail";
import { RecallDetail } from "../runs/RecallDetail";
import { CHANGES, type Item } from "./queue";

export interface Act {
  readonly key: string;
  readonly label: string;
  readonly does: "keep" | "accept" | "decline" | "delete" | "restore" | "reinstate" | "release";
}

interface Props {
  readonly item: Item;
  readonly acts: readonly Act[];
  readonly act: (act: Act, item: Item) => void;
  readonly onClose: () => void;
}

/** The whole case of an item, with what can be done with it. */
export function Opened({ item, acts, act, onClose }: Props) {
  const lead = (
    <>
      <p className="said">{item.said}</p>
      <p className="note-actions" role="group" aria-label="Decide">
        {acts.map((one) => (
          <button
            key={one.key}
            type="button"
            title={`${one.label} (${one.key})`}
            onClick={() => act(one, item)}
            className={one.key === "#" ? "danger" : one.key === "e" ? undefined : "primary"}
          >
            {one.label} <kbd aria-hidden>{one.key}</kbd>
          </button>
        ))}
      </p>
    </>
  );
  switch (item.opens) {
    case "memory":
      return <Detail id={item.memory} onClose={onClose} lead={lead} />;
    case "recall":
      return <RecallDetail id={item.recall} onClose={onClose} lead={lead} />;
    case "issue":
      return (
        <DetailPane label="Issue" onClose={onClose}>
          <CaseDetail name={item.alert.case} issue={item.alert.title} lead={lead} />
        </DetailPane>
      );
    case "proposal":
      return (
        <DetailPane label="Proposal" onClose={onClose}>
          <Proposed proposal={item.proposal} title={item.title} lead={lead} />
        </DetailPane>
      );
  }
}

const SHOWN = 5;

/** A change that rules propose, with each cue that it concerns, and the turns in which it was said. */
function Proposed({ proposal, title, lead }: { readonly proposal: ProposalView; readonly title: string; readonly lead: ReactNode }) {
  const { change, cue_ids: cues, target_id: target, created_at } = proposal;
  const shown = [...(target && change !== "note" ? [target] : []), ...cues].slice(0, SHOWN);
  const linked = change === "harmful" ? cues : change === "note" && target ? [target] : [];
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={title} />
        </PaneTitle>
        <p className="row-facts">
          <span className="kind">{CHANGES[change] ?? change}</span>
          <time dateTime={created_at}>{exactMoment(created_at)}</time>
        </p>
        {lead}
        {change === "graduate" && <Graduate proposal={proposal} />}
      </header>
      {linked.map((id) => (
        <p key={id}>
          <Link href={linkTo("/memory", { memory: id })}>Open the {change === "note" ? "note" : "memory"}</Link>
        </p>
      ))}
      {change !== "harmful" &&
        shown.map((id) => (
          <section key={id} className="proposed-cue" aria-label={id === target ? "The proposed cue" : "A cue"}>
            <CueDetail id={id} decided />
          </section>
        ))}
      {cues.length > SHOWN && <p className="muted">and {whole(cues.length - SHOWN)} more cues</p>}
    </article>
  );
}

/** A convention needs the file that holds it. */
function Graduate({ proposal }: { readonly proposal: ProposalView }) {
  const [artifact, setArtifact, forget] = useDraft(`artifact ${proposal.id}`, "");
  const decision = useDecision();
  return (
    <form
      className="judging-line"
      onSubmit={(event) => {
        event.preventDefault();
        decision.mutate({ proposal, accept: true, artifact: artifact.trim() }, { onSuccess: forget });
      }}
    >
      <input
        aria-label="File that holds the convention"
        placeholder="File that holds the convention"
        value={artifact}
        onChange={(event) => setArtifact(event.target.value)}
      />
      <button type="submit" className="primary" disabled={decision.isPending || artifact.trim() === ""}>
        Make it a convention
      </button>
    </form>
  );
}
