import { useAddress } from "../state/address";

interface Props {
  readonly parameter: string;
  readonly known: readonly (string | null)[];
  /** What is shown in its place. */
  readonly instead: string;
}

/** Names a value of the address that means nothing here. */
export function Unknown({ parameter, known, instead }: Props) {
  const value = useAddress().params.get(parameter);
  if (!value || known.includes(value)) return null;
  return (
    <p className="problem kept">
      There is no {parameter} “{value}”: {instead} shown.
    </p>
  );
}
