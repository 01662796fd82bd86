import { useEffect, useRef } from "react";
import { useService } from "../api/client";
import { useWorkspaces } from "../api/queries";

const EVERY_MILLISECONDS = 5_000;

/** Says that the service does not answer to its smallest question; what failed meanwhile is asked for again once it does. */
export function Away() {
  const { cache } = useService();
  const code = useWorkspaces(EVERY_MILLISECONDS).failureReason?.status;
  const away = code !== undefined && (code === 0 || code >= 502);
  const was = useRef(false);
  useEffect(() => {
    if (was.current && !away) void cache.invalidateQueries();
    was.current = away;
  }, [away, cache]);
  if (!away) return null;
  return (
    <p className="away" role="alert">
      The service does not answer. What you see may be old; it is asked again every five seconds.
    </p>
  );
}
