import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { ApiError } from "../api/client";
import { useStatus } from "../api/service";

const EVERY_MILLISECONDS = 5_000;

/** Says that the service does not answer; what failed meanwhile is asked for again once it does. */
export function Away() {
  const client = useQueryClient();
  const status = useStatus(EVERY_MILLISECONDS);
  const away = status.failureReason instanceof ApiError && (status.failureReason.status === 0 || status.failureReason.status >= 502);
  const was = useRef(false);
  useEffect(() => {
    if (was.current && !away) void client.invalidateQueries();
    was.current = away;
  }, [away, client]);
  if (!away) return null;
  return (
    <p className="away" role="alert">
      The service does not answer. What you see may be old; it is asked again every five seconds.
    </p>
  );
}
