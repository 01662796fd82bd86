import { useSamples } from "../../api/memories";
import { useRate } from "../../api/ratings";
import type { Memory, Sample } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { Markdown } from "../../parts/Markdown";
import { Quality } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { useOwn } from "./Judging";

/** The compressions of the memory's output side by side, each to be rated. */
export function Samples({ memory }: { readonly memory: Memory }) {
  const samples = useSamples(memory);
  if (samples.isError) return <p className="problem">The samples cannot be shown: {samples.error.message}</p>;
  if (!samples.data || samples.data.length === 0) return null;
  return (
    <section aria-label="Samples">
      <h3>Samples</h3>
      <p className="muted">{samples.data.length} compressions of one output. Agents are shown the best rated one alone.</p>
      <ol className="samples">
        {samples.data.map((sample) => (
          <Card key={sample.sample} id={memory.id} sample={sample} />
        ))}
      </ol>
    </section>
  );
}

function Card({ id, sample }: { readonly id: string; readonly sample: Sample }) {
  const number = sample.sample + 1;
  return (
    <li className="sample" aria-label={`Sample ${number}`} aria-current={sample.chosen}>
      <p className="sample-head">
        <strong>Sample {number}</strong>
        {sample.chosen && <span className="kind">shown to agents</span>}
        <Thumbs id={id} sample={sample} name={`sample ${number}`} />
      </p>
      <p className="sample-title">
        <OneLine text={sample.title} />
      </p>
      <Markdown text={sample.narrative} />
      <ul className="fact-list">
        {sample.facts.map((fact, place) => (
          <li key={place} dir="auto">
            {fact}
          </li>
        ))}
      </ul>
      <p className="muted">{sample.model ?? "Extractive"}</p>
    </li>
  );
}

interface ThumbsProps {
  readonly id: string;
  readonly sample: Sample;
  readonly name: string;
}

function Thumbs({ id, sample, name }: ThumbsProps) {
  const own = useOwn(id, sample.sample);
  const rate = useRate();
  const judge = (rating: 1 | -1) => {
    if (own?.rating !== rating) rate.mutate({ id, rating, comment: "", sample: sample.sample });
  };
  return (
    <span className="sample-thumbs">
      <button type="button" className="thumb good" aria-pressed={own?.rating === 1} onClick={() => judge(1)}>
        <Icon name="up" label={`Rate ${name} up`} />
      </button>
      <Quality value={sample.quality} always />
      <button type="button" className="thumb bad" aria-pressed={own?.rating === -1} onClick={() => judge(-1)}>
        <Icon name="down" label={`Rate ${name} down`} />
      </button>
    </span>
  );
}
