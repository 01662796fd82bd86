import { decimal } from "../../parts/format";
import { heading } from "../cues/asked";

const LABELS: Readonly<Record<string, string>> = {
  trigger: "Meaning: trigger",
  together: "Meaning: trigger and lesson",
  quote: "Meaning: the words quoted",
  scene: "Meaning: the turn and what came before",
  acts: "Kind of action",
  same_words: "Shared words (score only)",
  own_words: "The trigger's own words",
  words: "Words",
  file: "File",
  two_dates: "Seen on two dates",
  outcomes: "Heeded or ignored before",
  rated: "Ratings",
  judged: "Judged by the language model",
};
const HEIGHT = 8;
const LEAST = 0.0005;
/** A smaller part is 0.000 in the three digits that are shown. */

/** The parts of a cue's relevance: those for the cue and those against it. */
export function ActivationParts({ explain }: { readonly explain: Readonly<Record<string, number>> }) {
  const parts = Object.entries(explain).filter(([, value]) => Math.abs(value) >= LEAST);
  const most = Math.max(LEAST, ...parts.map(([, value]) => Math.abs(value)));
  return (
    <dl className="signed-parts">
      {parts.map(([name, value]) => (
        <div key={name}>
          <dt>{LABELS[name] ?? heading(name)}</dt>
          <dd>
            <svg viewBox={`-50 0 100 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
              <rect className={value > 0 ? "for" : "against"} x={Math.min(0, (50 * value) / most)} width={(50 * Math.abs(value)) / most} height={HEIGHT} />
            </svg>
            {value > 0 ? "+" : ""}
            {decimal(value, 3)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
