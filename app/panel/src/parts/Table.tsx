import { type ReactNode, useState } from "react";
import { whole } from "./format";

const AT_FIRST = 100;
/** Rows; the others are shown on request. */

export interface Column<Row> {
  readonly name: string;
  readonly kind?: "number" | "extra" | undefined;
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
  const [all, setAll] = useState(rows.length <= AT_FIRST);
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table className="plain">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={column.kind}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(all ? rows : rows.slice(0, AT_FIRST)).map((row) => (
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
      {!all && (
        <button type="button" className="quiet" onClick={() => setAll(true)}>
          Show all {whole(rows.length)}
        </button>
      )}
    </div>
  );
}
