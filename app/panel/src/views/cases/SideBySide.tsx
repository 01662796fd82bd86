import { useRun } from "../../api/queries";
import type { CaseVersion, RunStoryView } from "../../api/schema";
import { Choice } from "../../parts/Field";
import { MemoryLink } from "../../parts/MemoryLink";
import { Unshown } from "../../parts/states";
import { Unknown } from "../../parts/Unknown";
import { changeAddress, useAddress } from "../../state/address";

const SIDES = [
  ["one", "One version"],
  ["other", "The other version"],
] as const;

interface Shown {
  readonly id: string;
  readonly title: string;
}

/** What one version's run was shown and the other's was not. */
export function SideBySide({ versions }: { readonly versions: readonly CaseVersion[] }) {
  const { params } = useAddress();
  const find = (name: string | null) => versions.find(({ version }) => version === name);
  const one = find(params.get("one")) ?? versions.at(-2);
  const other = find(params.get("other")) ?? versions.at(-1);
  if (!one || !other) return null;
  const names = versions.map(({ version }) => version);
  return (
    <section>
      <h3>Two versions side by side</h3>
      {SIDES.map(([name]) => (
        <Unknown key={name} parameter={name} what="version" known={names} instead="a latest one is" />
      ))}
      <p className="note-actions">
        {SIDES.map(([name, label], place) => (
          <Choice
            key={name}
            aria-label={label}
            value={(place === 0 ? one : other).version}
            set={(version) => changeAddress({ [name]: version }, { replace: true })}
            options={names.map((version) => [version, version])}
          />
        ))}
      </p>
      <Both one={one} other={other} />
    </section>
  );
}

function Both({ one, other }: { readonly one: CaseVersion; readonly other: CaseVersion }) {
  const lacking = [one, other].filter(({ runs }) => runs.length === 0).map(({ version }) => version);
  const stories = [useRun(one.runs[0] ?? ""), useRun(other.runs[0] ?? "")] as const;
  const failed = stories.find(({ isError }) => isError);
  if (lacking.length > 0) {
    return <p className="muted">No run of {lacking.join(" and ")} is known: a report judged it. So it is not known what it was shown.</p>;
  }
  if (failed) return <Unshown what="A run" query={failed} />;
  const [before, after] = stories.map(({ data }) => data);
  if (!before || !after) return null;
  const [told, toldToo] = [shownTo(before), shownTo(after)];
  return (
    <div className="both-versions">
      <Only label={`Only ${one.version} was shown`} shown={told.filter(({ id }) => !toldToo.some((two) => two.id === id))} />
      <Only label={`Only ${other.version} was shown`} shown={toldToo.filter(({ id }) => !told.some((two) => two.id === id))} />
    </div>
  );
}

function shownTo({ given, cues }: RunStoryView): readonly Shown[] {
  const all = [
    ...given.map(({ id, title }) => ({ id, title: title ?? "no longer stored" })),
    ...cues.map(({ id, lesson }) => ({ id, title: lesson ?? "no longer stored" })),
  ];
  return [...new Map(all.map((shown) => [shown.id, shown])).values()];
}

function Only({ label, shown }: { readonly label: string; readonly shown: readonly Shown[] }) {
  return (
    <div>
      <h4>{label}</h4>
      {shown.length === 0 && <p className="muted">nothing</p>}
      <ul className="fact-list">
        {shown.map(({ id, title }) => (
          <li key={id}>
            <MemoryLink id={id} title={title} />
          </li>
        ))}
      </ul>
    </div>
  );
}
