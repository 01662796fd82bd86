import { type ComponentType, Suspense, use } from "react";
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

const PLACES: Readonly<Record<string, () => Promise<ComponentType>>> = {
  "/": () => import("./views/desk/Desk").then((loaded) => loaded.Desk),
  "/cases": () => import("./views/cases/Cases").then((loaded) => loaded.Cases),
  "/runs": () => import("./views/runs/Runs").then((loaded) => loaded.Runs),
  "/memory": () => import("./views/memory/Memory").then((loaded) => loaded.Memory),
  "/service": () => import("./views/service/Service").then((loaded) => loaded.Service),
};
const loads = new Map<string, Promise<ComponentType>>();
const views = new Map<string, ComponentType>();

/** Loads the code of a place, once; null for an address that has none. */
export function load(path: string): Promise<ComponentType> | null {
  const known = loads.get(path);
  if (known) return known;
  const loading = PLACES[path]?.().catch(() => {
    throw new Error("its code could not be loaded: the service has stopped, or it is newer than this page");
  });
  if (!loading) return null;
  loading.then(
    (view) => views.set(path, view),
    () => undefined,
  );
  loads.set(path, loading);
  return loading;
}

export function App() {
  const { path } = useAddress();
  const keyAsked = useKeyAsked();
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
              <Suspense fallback={<Loading what="the view" />}>
                <Place path={path} />
              </Suspense>
            </Boundary>
          </InWorkspace>
        )}
      </main>
      <Notices />
      <Hints />
    </>
  );
}

function Place({ path }: { readonly path: string }) {
  const loading = load(path);
  if (!loading) return <Unknown path={path} />;
  const View = views.get(path) ?? use(loading);
  return <View />;
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
