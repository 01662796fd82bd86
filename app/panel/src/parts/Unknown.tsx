import { linkWith, useAddress } from "../state/address";
import { Link } from "./Link";

interface Props {
  readonly parameter: string;
  readonly what?: string;
  readonly known: readonly (string | null)[];
  /** What is shown in its place. */
  readonly instead: string;
}

/** Names a value of the address that means nothing here. */
export function Unknown({ parameter, what = parameter, known, instead }: Props) {
  const value = useAddress().params.get(parameter);
  if (!value || known.includes(value)) return null;
  return <Strange said={`There is no ${what} “${value}”: ${instead} shown.`} names={[parameter]} />;
}

/** Names the parameters of the address that say nothing to the place. */
export function UnknownNames({ known }: { readonly known: readonly string[] }) {
  const names = [...new Set(useAddress().params.keys())].filter((name) => !known.includes(name));
  return names.length > 0 && <Strange said={`Ignored, as the place does not know it: ${names.join(", ")}.`} names={names} />;
}

function Strange({ said, names }: { readonly said: string; readonly names: readonly string[] }) {
  return (
    <p className="problem kept">
      {said} <Link href={linkWith(Object.fromEntries(names.map((name) => [name, null])))}>Take it out of the address</Link>
    </p>
  );
}
