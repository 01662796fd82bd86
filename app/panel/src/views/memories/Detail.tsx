import { useState } from "react";
import { useChange } from "../../api/changes";
import { useMemory } from "../../api/memories";
import type { Memory } from "../../api/types";
import { OpenedPane } from "../../parts/DetailPane";
import { Details } from "../../parts/Details";
import { exactMoment } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Score, Verdict } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { PaneTitle } from "../../parts/PaneTitle";
import { Working } from "../../parts/states";
import { linkTo } from "../../state/address";
import { Facts, Findings, Narrative, Text } from "./Content";
import { NoteForm } from "./NoteForm";
import { Judging } from "./Judging";
import { AddLink } from "./AddLink";
import { Links } from "./Links";
import { Chain, Place } from "./Provenance";
import { Recalls } from "./Recalls";

interface Props {
  readonly id: string;
  readonly onClose: () => void;
}

/** One memory with everything around it. */
export function Detail({ id, onClose }: Props) {
  return (
    <OpenedPane name="memory" query={useMemory(id)} onClose={onClose}>
      {(memory) => <Whole memory={memory} />}
    </OpenedPane>
  );
}

function Whole({ memory }: { readonly memory: Memory }) {
  const { observation } = memory;
  const [editing, setEditing] = useState(false);
  if (editing) return <NoteForm note={memory} onClose={() => setEditing(false)} />;
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={memory.title || `Untitled ${memory.kind}`} />
        </PaneTitle>
        <p className="row-facts">
          <span className="kind">{memory.kind}</span>
          {observation?.task_type && <span>{observation.task_type}</span>}
          <Verdict value={observation?.verdict} />
          {memory.final_score !== null && (
            <span>
              evaluator's score <Score value={memory.final_score} />
            </span>
          )}
          <time dateTime={memory.occurred_at ?? memory.created_at}>
            {exactMoment(memory.occurred_at ?? memory.created_at)}
          </time>
        </p>
        <HeldBack memory={memory} />
        {memory.kind === "note" && !memory.source && !memory.retired_as && (
          <p>
            <button type="button" onClick={() => setEditing(true)}>
              Edit
            </button>
          </p>
        )}
      </header>
      <Judging memory={memory} />
      <Findings memory={memory} />
      <Narrative memory={memory} />
      <Facts memory={memory} />
      <Text memory={memory} />
      <Tags tags={memory.tags} />
      <Place memory={memory} />
      <Links id={memory.id} />
      <AddLink id={memory.id} />
      <Recalls memory={memory} />
      <Chain memory={memory} />
      <Origin memory={memory} />
    </article>
  );
}

const STATES: Readonly<Record<string, string>> = {
  gone: "This text is no longer in its source. No answer uses this memory.",
  deleted: "This memory is deleted. No answer uses it. You can restore it until the trash is emptied.",
  superseded: "A newer memory replaced this one. No answer uses it.",
  quarantined: "The injection scan quarantined this memory. No answer uses it until somebody releases it.",
  suspect: "The injection scan suspects an instruction to the reader. No history shows this memory until somebody releases it.",
};

/** Says why answers leave the memory out, with the means to change that. */
function HeldBack({ memory }: { readonly memory: Memory }) {
  const state = memory.retired_as ?? (memory.suspect ? "suspect" : "");
  const scanned = state === "quarantined" || state === "suspect";
  const restore = useChange(scanned ? "release" : state === "superseded" ? "reinstate" : "restore");
  if (state === "") return null;
  return (
    <p className="retired">
      <span>{STATES[state] ?? state}</span>
      {restore.isPending && <Working what={scanned ? "Releasing" : "Restoring"} />}
      {state !== "gone" && (
        <button type="button" disabled={restore.isPending} onClick={() => restore.mutate([memory.id])}>
          {scanned ? "Release" : "Restore"}
        </button>
      )}
    </p>
  );
}

function Tags({ tags }: { readonly tags: readonly string[] }) {
  if (tags.length === 0) return null;
  return (
    <section>
      <h3>Tags</h3>
      <ul className="chips">
        {tags.map((tag) => (
          <li key={tag}>
            <Link className="chip" href={linkTo("/", { tag })} title={`Show memories with the tag ${tag}`}>
              <OneLine text={tag} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

const COMPRESSORS: Readonly<Record<string, string>> = {
  given: "None (the client sent the observation)",
  extractive: "Extractive",
  llm: "Language model",
};

function compressionOf({ compressor, model }: NonNullable<Memory["observation"]>): string {
  const name = COMPRESSORS[compressor] ?? compressor;
  return model ? `${name} (${model})` : name;
}

function Origin({ memory }: { readonly memory: Memory }) {
  const { observation } = memory;
  return (
    <Details
      facts={[
        ["Stored", exactMoment(memory.created_at)],
        ["Event", memory.occurred_at && exactMoment(memory.occurred_at)],
        ["Retired", memory.valid_until && exactMoment(memory.valid_until)],
        ["Task", observation?.task],
        ["Output", observation?.output_path],
        ["Compression", observation && compressionOf(observation)],
        ["User", memory.user],
        ["Language", memory.language],
        ["Tokens", String(memory.tokens)],
        ["ID", memory.id],
      ]}
      metadata={memory.metadata}
    />
  );
}
