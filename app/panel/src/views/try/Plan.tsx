import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { Activation, Nearly, ShownLesson } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { decimal, milliseconds, partsOf, whole } from "../../parts/format";
import { HitHead } from "../../parts/MemoryLink";
import { Facts } from "../../parts/pane";
import { Answered } from "../../parts/states";
import type { Tried } from "../../state/tried";
import { heading, Kind } from "../memory/cue/words";

/** The cues that a plan fires, those that nearly fire, and the Markdown that goes into the prompt. */
export function Plan({ asked: { text, agent, option, budget } }: { readonly asked: Tried }) {
  const body = { plan: text, files: partsOf(option, ","), agent: agent || null, trial: true, ...(budget && { budget_tokens: budget }) };
  const answer = useService().useQuery("post", "/api/activate", { body }, ONCE);
  return (
    <div className={`answer activation ${answer.isPlaceholderData ? "stale" : ""}`}>
      <Answered query={answer} name="activation">
        {(data) => <Given answer={data} />}
      </Answered>
    </div>
  );
}

function Given({ answer: { cues, nearly, degraded, markdown, tokens, took_ms } }: { readonly answer: Activation }) {
  return (
    <>
      {degraded && <p className="degradation">{degraded}</p>}
      <section aria-label="Fired cues">
        <h2>{cues.length === 1 ? "1 cue fires" : `${whole(cues.length)} cues fire`}</h2>
        <p className="row-facts">
          <span>{whole(tokens)} tokens</span>
          <span>{milliseconds(took_ms)}</span>
        </p>
        <ol className="hits">
          {cues.map((cue) => (
            <Matched key={cue.id} cue={cue} said={cue.imperative} parts={cue.explain} />
          ))}
        </ol>
      </section>
      {nearly.length > 0 && (
        <section aria-label="Cues that nearly fired">
          <h2>Nearly fired</h2>
          <ol className="hits">
            {nearly.map((cue) => (
              <Matched key={cue.id} cue={cue} said={cue.lesson} />
            ))}
          </ol>
        </section>
      )}
      {markdown !== "" && <Copied title="Markdown for the agent" text={markdown} />}
    </>
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

interface Props {
  readonly cue: ShownLesson | Nearly;
  readonly said: string;
  /** What speaks for the cue and against it, in log-odds. */
  readonly parts?: Readonly<Record<string, number>>;
}

/** A cue that matches the plan, with the probability that it is about it, and why it is told or not. */
function Matched({ cue: { id, kind, score, reason }, said, parts }: Props) {
  return (
    <li>
      <HitHead id={id} title={said}>
        <span className="match">{score.toFixed(2)}</span>
      </HitHead>
      <p className="row-facts">
        <Kind kind={kind} />
        {reason && <span>{WITHHELD[reason] ?? reason}</span>}
      </p>
      {parts && (
        <details>
          <summary>Components</summary>
          <Facts className="numbers" facts={Object.entries(parts).map(([name, value]) => [heading(name), decimal(value, 3)])} />
        </details>
      )}
    </li>
  );
}
