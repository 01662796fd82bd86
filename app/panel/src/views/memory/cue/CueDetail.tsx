import { useState } from "react";
import { type CueAction, useCueAction } from "../../../api/acts";
import { useService } from "../../../api/client";
import type { Cue } from "../../../api/schema";
import { capitalised, day, exactMoment, share, times } from "../../../parts/format";
import { Link } from "../../../parts/Link";
import { Details } from "../../../parts/pane";
import { Answered } from "../../../parts/states";
import { OneLine } from "../../../parts/text";
import { linkTo } from "../../../state/address";
import { linkToTurn } from "../session/asked";
import { CueForm } from "./CueForm";
import { heading, Kind } from "./words";

interface Props {
  readonly id: string;
  /** True where it is decided on elsewhere on the page. */
  readonly decided?: boolean;
}

/** A cue: its lesson, the turns that it was learnt from, and how it fared since. */
export function CueDetail({ id, decided = false }: Props) {
  const cue = useService().useQuery("get", "/api/cues/{cue_id}", { params: { path: { cue_id: id } } });
  return (
    <Answered query={cue} name="cue">
      {(data) => <Whole cue={data} decided={decided} />}
    </Answered>
  );
}

function Whole({ cue, decided }: { readonly cue: Cue; readonly decided: boolean }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <CueForm cue={cue} onClose={() => setEditing(false)} />;
  return (
    <>
      <p className="row-facts">
        <Kind kind={cue.kind} />
        <span>confidence {share(cue.confidence)}</span>
        <span>consequence {share(cue.consequence)}</span>
        <span>{SCOPES[cue.scope] ?? cue.scope}</span>
        <span>{TRUSTS[cue.trust] ?? cue.trust}</span>
      </p>
      <Standing cue={cue} />
      {!decided && <Actions cue={cue} edit={() => setEditing(true)} />}
      <section>
        <h3>Lesson</h3>
        <p dir="auto">{cue.lesson}</p>
      </section>
      <Evidence cue={cue} />
      <Details
        title="The cue"
        facts={[
          ["When", cue.trigger],
          ...Object.entries(cue.details).map(([name, value]) => [heading(name), [value].flat().join("; ")] as const),
          ["Activations", countsOf(cue)],
          ["Action types", cue.action_types.join(", ")],
          ["Files", cue.files.join(", ")],
          ["Valid from", exactMoment(cue.valid_from)],
          ["Valid until", cue.valid_until && exactMoment(cue.valid_until)],
          ["Edited by a person", cue.edited.map(heading).join(", ")],
          ["Origin", ORIGINS[cue.origin] ?? cue.origin],
          ["Changed", exactMoment(cue.updated_at)],
        ]}
      />
    </>
  );
}

function countsOf({ fired, heeded, ignored, last_fired_at: last }: Cue): string {
  if (fired === 0) return "never fired";
  const outcomes = [heeded > 0 && `heeded ${times(heeded)}`, ignored > 0 && `ignored ${times(ignored)}`, last && `last on ${day(last)}`];
  return [`fired ${times(fired)}`, ...outcomes.filter(Boolean)].join(", ");
}

const SCOPES: Readonly<Record<string, string>> = { project: "this project", user: "this user's projects" };
const TRUSTS: Readonly<Record<string, string>> = {
  person: "said by a person",
  agent: "concluded by an agent",
  imported: "imported",
  web: "from the web",
};
const ORIGINS: Readonly<Record<string, string>> = {
  extracted: "Found in a session",
  given: "Written by hand",
  proposed: "Proposed from several sessions",
};
const STANDINGS: Readonly<Record<string, string>> = {
  proposed: "This cue is proposed. It does not fire until somebody accepts it.",
  retired: "This cue is retired. It does not fire.",
  superseded: "Another cue replaced this one. It does not fire.",
};

/** Says why the cue does not fire, or which cues contradict it. */
function Standing({ cue }: { readonly cue: Cue }) {
  const said = STANDINGS[cue.state];
  return (
    <>
      {said && (
        <p className="retired">
          <span>
            {said} {cue.superseded_by && <Link href={linkTo("/memory", { memory: cue.superseded_by })}>Open the other one</Link>}
          </span>
        </p>
      )}
      {cue.disputed_by.map((other) => (
        <p key={other} className="retired">
          <span>
            It is not clear if this cue holds: <Link href={linkTo("/memory", { memory: other })}>another one contradicts it</Link>.
          </span>
        </p>
      ))}
    </>
  );
}

function Evidence({ cue: { evidence } }: { readonly cue: Cue }) {
  return (
    <section>
      <h3>Evidence</h3>
      {evidence.length === 0 && <p className="muted">None: somebody wrote it by hand.</p>}
      <ul className="evidence">
        {evidence.map(({ session, path, section, turn_id, message, quote, at }, place) => (
          <li key={place}>
            {quote && <blockquote dir="auto">{quote}</blockquote>}
            <p className="row-facts">
              {session && (
                <Link href={linkToTurn(session, message)}>
                  <OneLine text={session} />
                  {message !== null && `, turn ${message}`}
                </Link>
              )}
              {path && (
                <Link href={linkTo("/memory", { memory: turn_id, q: turn_id ? null : path })}>
                  {section ? `${path}, ${section}` : path}
                </Link>
              )}
              {at && <time dateTime={at}>{exactMoment(at)}</time>}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The changes that a cue's state allows. */
function actionsOf(state: string): readonly CueAction[] {
  if (state === "active") return ["retire"];
  return state === "proposed" ? ["accept", "retire"] : ["restore"];
}

function Action({ action, cue }: { readonly action: CueAction; readonly cue: string }) {
  const change = useCueAction(action);
  return (
    <button
      type="button"
      className={action === "retire" ? "danger" : undefined}
      disabled={change.isPending}
      onClick={() => change.mutate(cue)}
    >
      {capitalised(action)}
    </button>
  );
}

function Actions({ cue, edit }: { readonly cue: Cue; readonly edit: () => void }) {
  return (
    <p className="note-actions">
      {actionsOf(cue.state).map((action) => (
        <Action key={action} action={action} cue={cue.id} />
      ))}
      <button type="button" onClick={edit}>
        Edit
      </button>
    </p>
  );
}
