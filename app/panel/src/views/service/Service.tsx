import { Link } from "../../parts/Link";
import { Unknown } from "../../parts/Unknown";
import { linkTo, useAddress } from "../../state/address";
import { Audit } from "./Audit";
import { Keys } from "./Keys";
import { Status } from "./Status";

const PARTS = [
  { name: null, label: "Health and ingestions", View: Status },
  { name: "audit", label: "Audit", View: Audit },
  { name: "keys", label: "API keys", View: Keys },
] as const;

/** The service: its health, who changed what, and who may. */
export function Service() {
  const { params } = useAddress();
  const part = PARTS.find(({ name }) => name === params.get("part")) ?? PARTS[0];
  return (
    <div className="service">
      <h1 className="visually-hidden">Service</h1>
      <nav className="tabs" aria-label="Parts of the service">
        {PARTS.map(({ name, label }) => (
          <Link key={label} href={linkTo("/service", { part: name })} aria-current={name === part.name ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <Unknown parameter="part" known={PARTS.map(({ name }) => name)} instead="health and ingestions are" />
      <part.View />
    </div>
  );
}
