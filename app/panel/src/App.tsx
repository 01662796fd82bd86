import { lazy, Suspense } from "react";
import { Header } from "./parts/Header";
import { KeyGate } from "./parts/KeyGate";
import { Link } from "./parts/Link";
import { Notices } from "./parts/Notices";
import { Empty, Loading } from "./parts/states";
import { linkTo, useAddress } from "./state/address";
import { useKeyAsked } from "./state/session";
import { Memories } from "./views/memories/Memories";

const Review = lazy(() => import("./views/review/Review").then((loaded) => ({ default: loaded.Review })));
const Graph = lazy(() => import("./views/graph/Graph").then((loaded) => ({ default: loaded.Graph })));
const Runs = lazy(() => import("./views/runs/Runs").then((loaded) => ({ default: loaded.Runs })));
const Ask = lazy(() => import("./views/ask/Ask").then((loaded) => ({ default: loaded.Ask })));
const Status = lazy(() => import("./views/status/Status").then((loaded) => ({ default: loaded.Status })));

export function App() {
  const { path } = useAddress();
  const keyAsked = useKeyAsked();
  return (
    <>
      <Header path={path} />
      <main id="main" tabIndex={-1}>
        {keyAsked ? <KeyGate /> : <Suspense fallback={<Loading what="the view" />}>{viewAt(path)}</Suspense>}
      </main>
      <Notices />
    </>
  );
}

function viewAt(path: string) {
  switch (path) {
    case "/":
      return <Memories />;
    case "/review":
      return <Review />;
    case "/graph":
      return <Graph />;
    case "/runs":
      return <Runs />;
    case "/ask":
      return <Ask />;
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
