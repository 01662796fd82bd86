/** The relations of links, in words. */

interface Linking {
  readonly relation: string;
  readonly direction: string;
}

/** From a memory to the other one; the second where the link leads from the other to it. */
const PHRASES: Readonly<Record<string, readonly [string, string]>> = {
  next: ["followed by", "follows"],
  derived_from: ["derived from", "gave rise to"],
  supersedes: ["supersedes", "superseded by"],
  contradicts: ["contradicts", "contradicted by"],
  refines: ["refines", "refined by"],
  causes: ["causes", "caused by"],
  mentions: ["mentions", "mentioned by"],
  same_entity: ["shares a rare name with", "shares a rare name with"],
  similar: ["similar to", "similar to"],
  same_task: ["of the same task as", "of the same task as"],
};

export function phraseOf({ relation, direction }: Linking): string {
  const words = relation.replaceAll("_", " ");
  const [out, back] = PHRASES[relation] ?? [words, `${words} (of the other)`];
  return direction === "out" ? out : back;
}
