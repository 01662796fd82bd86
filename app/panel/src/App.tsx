import type { ComponentType } from "react";
import { InWorkspace } from "./api/InWorkspace";
import { Away } from "./parts/Away";
import { Boundary } from "./parts/Boundary";
import { Header } from "./parts/Header";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty } from "./parts/states";
import { UnknownNames } from "./parts/Unknown";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Cases } from "./views/cases/Cases";
import { Desk } from "./views/desk/Desk";
import { NO_FILTERS } from "./views/memory/filters";
import { Memory } from "./views/memory/Memory";
import { Runs } from "./views/runs/Runs";
import { Service } from "./views/service/Service";

/** The places, each with the parameters that it knows. */
const VIEWS: Readonly<Record<string, readonly [View: ComponentType, known: string]>> = {
  "/": [Desk, "reason item one other"],
  "/cases": [Cases, "case q one other"],
  "/runs": [Runs, "run recall q task_type verdict agent sort"],
  "/memory": [Memory, `look q sort order memory session turn note cluster ${Object.keys(NO_FILTERS).join(" ")}`],
  "/service": [Service, "part q id key"],
};

export function App() {
  const { path } = useAddress();
  const keyAsked = useKeyAsked();
  const [View, known = ""] = VIEWS[path] ?? [];
  return (
    <>
      <Header path={path} />
      <InWorkspace>
        <Away />
      </InWorkspace>
      <main id="main" tabIndex={-1}>
        {keyAsked ? (
          <KeyGate />
        ) : (
          <InWorkspace>
            {View && <UnknownNames known={["workspace", ...known.split(" ")]} />}
            <Boundary key={path}>{View ? <View /> : <NoPlace path={path} />}</Boundary>
          </InWorkspace>
        )}
      </main>
      <Notices />
    </>
  );
}

function NoPlace({ path }: { readonly path: string }) {
  return (
    <Empty title={`There is no place ${path}`}>
      <p>
        <Link href={linkTo("/")}>Go to the desk</Link>, or to another place.
      </p>
    </Empty>
  );
}
