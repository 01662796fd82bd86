import type { ReactNode } from "react";
import { Facts } from "./Facts";

interface Props {
  readonly title?: string;
  /** Names and values; a fact without a value is left out. */
  readonly facts: readonly (readonly [string, string | null | undefined])[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly children?: ReactNode;
}

/** The last section of an open item: what the others do not show. */
export function Details({ title = "Details", facts, metadata, children }: Props) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
      <Facts facts={facts} />
      {Object.keys(metadata).length > 0 && (
        <details>
          <summary>Metadata</summary>
          <pre tabIndex={0}>{JSON.stringify(metadata, null, 2)}</pre>
        </details>
      )}
    </section>
  );
}
