import { decimal } from "../../parts/format";
import { heading } from "../memory/cue/words";

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
