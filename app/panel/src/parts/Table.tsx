import type { ReactNode } from "react";

export interface Column<Row> {
  readonly name: string;
  readonly kind?: "number" | "extra" | undefined;
  /** What is shown in place of the name. */
  readonly label?: ReactNode;
  readonly cell: (row: Row) => ReactNode;
}

interface Props<Row> {
  /** What the table shows, for those who do not see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A table that scrolls sideways; numbers stand at the right, and what is extra goes where there is no room. */
export function Table<Row>({ label, columns, rows, keyOf }: Props<Row>) {
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table className="plain">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={column.kind}>
                {column.label ?? column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, kind, cell }) => (
                <td key={name} className={kind}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
