import type { Memory } from "../../api/types";
import { exactMoment, times } from "../../parts/format";

/** How often and when the memory was recalled. */
export function Recalls({ memory: { access_count, accessed_at } }: { readonly memory: Memory }) {
  return (
    <section aria-label="Recalls">
      <h3>Recalls</h3>
      <p className="row-facts">
        <span>{access_count === 0 ? "never recalled" : `recalled ${times(access_count)}`}</span>
        {accessed_at && <time dateTime={accessed_at}>last {exactMoment(accessed_at)}</time>}
      </p>
    </section>
  );
}
