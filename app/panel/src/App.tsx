import { type ComponentType, lazy, Suspense } from "react";
import { Boundary } from "./parts/Boundary";
import { Header } from "./parts/Header";
import { Hints } from "./parts/Hints";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty, Loading } from "./parts/states";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Memories } from "./views/memories/Memories";

const Sessions = view(() => import("./views/sessions/Sessions").then((loaded) => loaded.Sessions));
const Cues = view(() => import("./views/cues/Cues").then((loaded) => loaded.Cues));
const Review = view(() => import("./views/review/Review").then((loaded) => loaded.Review));
const Graph = view(() => import("./views/graph/Graph").then((loaded) => loaded.Graph));
const Runs = view(() => import("./views/runs/Runs").then((loaded) => loaded.Runs));
const Ask = view(() => import("./views/ask/Ask").then((loaded) => loaded.Ask));
const Effect = view(() => import("./views/effect/Effect").then((loaded) => loaded.Effect));
const Recalls = view(() => import("./views/recalls/Recalls").then((loaded) => loaded.Recalls));
const Keys = view(() => import("./views/keys/Keys").then((loaded) => loaded.Keys));
const Status = view(() => import("./views/status/Status").then((loaded) => loaded.Status));

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
  return (
    <>
      <Header path={path} />
      <main id="main" tabIndex={-1}>
        {keyAsked ? (
          <KeyGate />
        ) : (
          <Boundary key={path}>
            <Suspense fallback={<Loading what="the view" />}>{viewAt(path)}</Suspense>
          </Boundary>
        )}
      </main>
      <Notices />
      <Hints />
    </>
  );
}

function viewAt(path: string) {
  switch (path) {
    case "/":
      return <Memories />;
    case "/sessions":
      return <Sessions />;
    case "/cues":
      return <Cues />;
    case "/review":
      return <Review />;
    case "/graph":
      return <Graph />;
    case "/runs":
      return <Runs />;
    case "/effect":
      return <Effect />;
    case "/recalls":
      return <Recalls />;
    case "/ask":
      return <Ask />;
    case "/keys":
      return <Keys />;
    case "/status":
      return <Status />;
    default:
      return (
        <Empty title="There is no such view">
          <Link href={linkTo("/")}>Go to the memories</Link>
        </Empty>
      );
  }
}
