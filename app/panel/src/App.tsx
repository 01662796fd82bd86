import { type ComponentType, lazy, Suspense } from "react";
import { InWorkspace } from "./api/InWorkspace";
import { Away } from "./parts/Away";
import { Boundary } from "./parts/Boundary";
import { Header } from "./parts/Header";
import { Hints } from "./parts/Hints";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty, Loading } from "./parts/states";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Desk } from "./views/desk/Desk";

const PLACES: Readonly<Record<string, ComponentType>> = {
  "/": Desk,
  "/cases": view(() => import("./views/cases/Cases").then((loaded) => loaded.Cases)),
  "/runs": view(() => import("./views/runs/Runs").then((loaded) => loaded.Runs)),
  "/memory": view(() => import("./views/memory/Memory").then((loaded) => loaded.Memory)),
  "/service": view(() => import("./views/service/Service").then((loaded) => loaded.Service)),
};

function view(load: () => Promise<ComponentType>) {
  return lazy(async () => {
    try {
      return { default: await load() };
    } catch {
      throw new Error("its code could not be loaded: the service has stopped, or it is newer than this page");
    }
  });
}

export function App() {
  const { path } = useAddress();
  const keyAsked = useKeyAsked();
  const Place = PLACES[path];
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
            <Boundary key={path}>
              <Suspense fallback={<Loading what="the view" />}>{Place ? <Place /> : <Unknown path={path} />}</Suspense>
            </Boundary>
          </InWorkspace>
        )}
      </main>
      <Notices />
      <Hints />
    </>
  );
}

function Unknown({ path }: { readonly path: string }) {
  return (
    <Empty title={`There is no place ${path}`}>
      <p>
        <Link href={linkTo("/")}>Go to the desk</Link>, or to one of the places above.
      </p>
    </Empty>
  );
}
