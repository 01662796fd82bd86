import { type ComponentType, Suspense, use } from "react";
import { InWorkspace } from "./api/InWorkspace";
import { Away } from "./parts/Away";
import { Boundary } from "./parts/Boundary";
import { Header } from "./parts/Header";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty, Loading } from "./parts/states";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Cases } from "./views/cases/Cases";
import { Desk } from "./views/desk/Desk";
import { Memory } from "./views/memory/Memory";

/** Places whose code comes on request: others share nearly all of theirs. */
const PLACES: Readonly<Record<string, () => Promise<ComponentType>>> = {
  "/runs": () => import("./views/runs/Runs").then((loaded) => loaded.Runs),
  "/service": () => import("./views/service/Service").then((loaded) => loaded.Service),
};
const loads = new Map<string, Promise<ComponentType>>();
const views = new Map<string, ComponentType>([
  ["/", Desk],
  ["/cases", Cases],
  ["/memory", Memory],
]);

/** Loads the code of a place, once; null where there is nothing to load. */
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
    </>
  );
}

function Place({ path }: { readonly path: string }) {
  const loading = load(path);
  const View = views.get(path) ?? (loading && use(loading));
  return View ? <View /> : <Unknown path={path} />;
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
