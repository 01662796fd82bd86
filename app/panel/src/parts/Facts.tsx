import type { ReactNode } from "react";

interface Props {
  readonly className?: string;
  /** Names and values; a fact without a value is left out. */
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
}

/** Names with their values. */
export function Facts({ className = "facts", facts }: Props) {
  return (
    <dl className={className}>
      {facts.map(
        ([name, value], place) =>
          value && (
            <div key={place}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
