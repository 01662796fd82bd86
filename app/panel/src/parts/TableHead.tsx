import type { ReactNode } from "react";

interface Column {
  readonly name: string;
  readonly kind?: "number" | "extra" | undefined;
  /** What is shown in place of the name. */
  readonly label?: ReactNode;
}

/** The headings of a table's columns; numbers stand at the right, and what is extra goes where there is no room. */
export function TableHead({ columns }: { readonly columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map(({ name, kind, label }) => (
          <th key={name} scope="col" className={kind}>
            {label ?? name}
          </th>
        ))}
      </tr>
    </thead>
  );
}
