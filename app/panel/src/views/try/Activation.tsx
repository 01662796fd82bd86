import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { Activation as Answer, Nearly, ShownLesson } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { TextField } from "../../parts/Field";
import { decimal, milliseconds, partsOf, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { HitHead } from "../../parts/MemoryLink";
import { Answered, Empty } from "../../parts/states";
import { linkTo } from "../../state/address";
import { useTried } from "../../state/tried";
import { heading, Kind } from "../memory/cue/words";
import { AskForm } from "./AskForm";

/** A plan as an agent sends it before it acts, with the cues that fire and those that nearly fired. */
export function Activation() {
  const { text: plan, agent, files, budget } = useTried().plan;
  const answer = useService().useQuery(
    "post",
    "/api/activate",
    { body: { plan, files: partsOf(files, ","), agent: agent || null, budget_tokens: budget, trial: true } },
    { ...ONCE, enabled: plan !== "" },
  );
  return (
    <>
      <AskForm tab="plan" label="Plan or action" placeholder="drop column deprecated_flag" action="Activate">
        {(draft, set) => (
          <TextField label="Files, separated by commas" placeholder="Any" value={draft.files} set={(value) => set({ files: value })} />
        )}
      </AskForm>
      {plan === "" ? (
        <Empty title="See which cues a plan fires">
          <p>Type what an agent is about to do. You see which cues fire, why each of them fires, and which nearly fired.</p>
        </Empty>
      ) : (
        <div className={`answer activation ${answer.isPlaceholderData ? "stale" : ""}`}>
          <Answered query={answer} name="activation">
            {(data) => <Given answer={data} />}
          </Answered>
        </div>
      )}
    </>
  );
}

function Given({ answer }: { readonly answer: Answer }) {
  const { cues, nearly, contradictions, markdown } = answer;
  return (
    <>
      {answer.degraded && <p className="degradation">{answer.degraded}</p>}
      {contradictions.map(({ cue_id, statement }) => (
        <p key={cue_id} className="contradiction" dir="auto">
          {statement}
        </p>
      ))}
      <section aria-label="Fired cues">
        <header>
          <h2>{cues.length === 1 ? "1 cue fires" : `${whole(cues.length)} cues fire`}</h2>
          <p className="row-facts">
            <span>{whole(answer.tokens)} tokens</span>
            <span>{milliseconds(answer.took_ms)}</span>
            {answer.action_types.length > 0 && <span>action types: {answer.action_types.join(", ")}</span>}
          </p>
        </header>
        {cues.length === 0 && <p className="muted">No cue fires for this plan. The agent gets no section.</p>}
        <ol className="hits">
          {cues.map((cue) => (
            <Fired key={cue.id} cue={cue} />
          ))}
        </ol>
      </section>
      {nearly.length > 0 && <NearlyFired cues={nearly} />}
      {markdown !== "" && (
        <section aria-label="Markdown for the agent">
          <Copied title="Markdown for the agent" text={markdown} />
        </section>
      )}
    </>
  );
}

function Head({ id, text, score }: { readonly id: string; readonly text: string; readonly score: number }) {
  return (
    <HitHead id={id} title={text}>
      <span className="match" title="The probability that the cue is about the plan, 0 to 1">
        {score.toFixed(2)}
      </span>
    </HitHead>
  );
}

function Fired({ cue }: { readonly cue: ShownLesson }) {
  return (
    <li>
      <Head id={cue.id} text={cue.imperative} score={cue.score} />
      <p className="row-facts">
        <Kind kind={cue.kind} />
        {cue.action_types.length > 0 && <span>{cue.action_types.join(", ")}</span>}
        {cue.reason && <span>{cue.reason}</span>}
      </p>
      {cue.checkpoint && (
        <p className="checkpoint" dir="auto">
          {cue.checkpoint}
        </p>
      )}
      {cue.conflict_with.map((other) => (
        <p key={other} className="boost">
          Contradicted by <Link href={linkTo("/memory", { memory: other })}>another cue</Link>; it is not clear which one holds
        </p>
      ))}
      <details>
        <summary>Components</summary>
        <ActivationParts explain={cue.explain} />
      </details>
    </li>
  );
}

const WITHHELD: Readonly<Record<string, string>> = {
  unlikely: "less likely to apply than its consequence asks for",
  enough: "likelier cues are shown",
  trust: "neither a person said it nor an agent concluded it",
  suspect: "the injection scan suspects an instruction in it",
  alike: "a better one says the same",
  budget: "the token budget is used up",
};

/** Cues that match the plan and are not told. */
function NearlyFired({ cues }: { readonly cues: readonly Nearly[] }) {
  return (
    <section aria-label="Cues that nearly fired">
      <header>
        <h2>Nearly fired</h2>
      </header>
      <ol className="hits nearly">
        {cues.map((cue) => (
          <li key={cue.id}>
            <Head id={cue.id} text={cue.lesson} score={cue.score} />
            <p className="row-facts">
              <Kind kind={cue.kind} />
              <span>{WITHHELD[cue.reason] ?? cue.reason}</span>
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  adapted: "Meaning: as trained on plans and lessons",
  together: "Meaning: trigger and lesson",
  acts: "Kind of action",
  words: "Shared words, rare ones more",
  bias: "How rarely any cue applies",
  right: "The plan does it right already",
  file: "File",
  two_dates: "Seen on two dates",
  outcomes: "Heeded or ignored before",
  rated: "Ratings",
};
const HEIGHT = 8;
const LEAST = 0.0005;
/** A smaller part is 0.000 in the three digits that are shown. */

/** The parts of the log-odds that a cue applies: those for it and those against it. */
function ActivationParts({ explain }: { readonly explain: Readonly<Record<string, number>> }) {
  const parts = Object.entries(explain).filter(([, value]) => Math.abs(value) >= LEAST);
  const most = Math.max(LEAST, ...parts.map(([, value]) => Math.abs(value)));
  return (
    <dl className="signed-parts">
      {parts.map(([name, value]) => (
        <div key={name}>
          <dt>{LABELS[name] ?? heading(name)}</dt>
          <dd>
            <svg viewBox={`-50 0 100 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
              <rect
                className={value > 0 ? "for" : "against"}
                x={Math.min(0, (50 * value) / most)}
                width={(50 * Math.abs(value)) / most}
                height={HEIGHT}
              />
            </svg>
            {value > 0 ? "+" : ""}
            {decimal(value, 3)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
