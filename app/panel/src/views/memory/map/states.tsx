import { useEffect, useState } from "react";
import { capitalised } from "../../../parts/format";
import { Empty } from "../../../parts/states";
import { changeAddress } from "../../../state/address";

const SECOND = 1000;

/** A stored map is there at once; one that is to be drawn takes its time, which is counted. */
export function Drawing() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => setSeconds((count) => count + 1), SECOND);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <div className="drawing">
      <p className="loading" role="status">
        <span className="spinner" aria-hidden />
        {seconds === 0 ? "Loading the map …" : "Drawing the map …"}
      </p>
      {seconds > 0 && (
        <p className="muted">
          <span aria-hidden>{seconds} s. </span>
          Positions are computed from meaning. This takes seconds, and up to a minute the first time after an installation. The service
          stores each map.
        </p>
      )}
    </div>
  );
}

interface Props {
  readonly reason: string;
  readonly kind: string;
  readonly look: () => unknown;
}

export function NoMap({ reason, kind, look }: Props) {
  return (
    <Empty title="There is nothing to map yet">
      {reason && <p>{capitalised(reason)}.</p>}
      <p>
        A memory appears on the map once it has a vector. Store memories with <code>priors ingest reports/</code> or{" "}
        <code>POST /api/memories</code>.
      </p>
      {kind && (
        <button type="button" onClick={() => changeAddress({ kind: null })}>
          Show all kinds
        </button>
      )}{" "}
      <button type="button" onClick={() => void look()}>
        Check again
      </button>
    </Empty>
  );
}
