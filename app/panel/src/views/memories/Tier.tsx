import { TIER_NAMES, usePin } from "../../api/tiers";
import type { Memory } from "../../api/types";
import { exactMoment, times } from "../../parts/format";
import { Link } from "../../parts/Link";
import { linkTo } from "../../state/address";

/** The memory's tier and its recalls, with the means to keep it in a tier. */
export function Tier({ memory }: { readonly memory: Memory }) {
  const { tier, pinned, access_count, accessed_at } = memory;
  const pin = usePin(memory);
  return (
    <section aria-label="Tier">
      <h3>Tier</h3>
      <p className="row-facts">
        <Link href={linkTo("/", { tier })} title="Show memories of this tier">
          {TIER_NAMES[tier]}
        </Link>
        {pinned && <span className="rule">pinned</span>}
        <span>{access_count === 0 ? "never recalled" : `recalled ${times(access_count)}`}</span>
        {accessed_at && <time dateTime={accessed_at}>last {exactMoment(accessed_at)}</time>}
      </p>
      <p className="tier-pins">
        {pinned ? (
          <button type="button" disabled={pin.isPending} onClick={() => pin.mutate(null)}>
            Let heat decide
          </button>
        ) : (
          (["short_term", "long_term"] as const).map((name) => (
            <button key={name} type="button" disabled={pin.isPending} onClick={() => pin.mutate(name)}>
              Keep in {TIER_NAMES[name].toLowerCase()}
            </button>
          ))
        )}
      </p>
    </section>
  );
}
