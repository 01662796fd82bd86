import type { ComponentType } from "react";
import { InWorkspace } from "./api/InWorkspace";
import { Away } from "./parts/Away";
import { Boundary } from "./parts/Boundary";
import { Header } from "./parts/Header";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty } from "./parts/states";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Cases } from "./views/cases/Cases";
import { Desk } from "./views/desk/Desk";
import { Memory } from "./views/memory/Memory";
import { Runs } from "./views/runs/Runs";
import { Service } from "./views/service/Service";

const VIEWS: Readonly<Record<string, ComponentType>> = {
  "/": Desk,
  "/cases": Cases,
  "/runs": Runs,
  "/memory": Memory,
  "/service": Service,
};

export function App() {
  const { path } = useAddress();
  const keyAsked = useKeyAsked();
  const View = VIEWS[path];
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
            <Boundary key={path}>{View ? <View /> : <Unknown path={path} />}</Boundary>
          </InWorkspace>
        )}
      </main>
      <Notices />
    </>
  );
}

function Unknown({ path }: { readonly path: string }) {
  return (
    <Empty title={`There is no place ${path}`}>
      <p>
        <Link href={linkTo("/")}>Go to the desk</Link>, or to another place.
      </p>
    </Empty>
  );
}
