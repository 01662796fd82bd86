import { useChange, useCueAction, useDecision } from "../../api/acts";
import { useService } from "../../api/client";
import { whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { ListRow } from "../../parts/list";
import { DetailPane } from "../../parts/pane";
import { Empty, Failure, Loading, More } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { Unknown } from "../../parts/Unknown";
import { changeAddress, linkWith, useAddress } from "../../state/address";
import { focusLine } from "../../state/focus";
import { forget, keep, keyOf } from "../../state/kept";
import { notify } from "../../state/notices";
import type { Shortcuts } from "../../state/shortcuts";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { Helped } from "./Helped";
import { type Act, Opened } from "./Opened";
import { type Item, PUT_AWAY, type Queue, REASONS, type Reason, useQueue } from "./queue";

const NAMES = [...REASONS, ...PUT_AWAY];

/** What waits for a person, gravest first, and beside it the whole case. */
export function Desk() {
  const { params } = useAddress();
  const reason = NAMES.find(({ name }) => name === params.get("reason"))?.name ?? null;
  const open = params.get("item");
  const queue = useQueue(reason);
  const { items, kept } = queue;
  const ids = items.map(({ id }) => id);
  const opened = items.find(({ id }) => id === open);
  const act = useActs(ids);
  const keys: Shortcuts = {
    ...Object.fromEntries(actsOf(opened).map((one) => [one.key, () => opened && act(one, opened)])),
    ...Object.fromEntries(
      [null, ...NAMES].map((one, place) => [String(place), () => changeAddress({ reason: one?.name ?? null, item: null })]),
    ),
  };
  const reach = (place: number) => {
    if (place >= ids.length - 1) for (const page of queue.pages) if (!page.isFetchingNextPage) void page.fetchNextPage();
  };
  const close = useListKeys({ parameter: "item", ids, open, lineOf, reach }, keys);
  useTitle("Desk");
  return (
    <div className={`desk runs ${open ? "with-detail" : ""}`}>
      <h1 className="visually-hidden">Desk</h1>
      <section className="pane-list" aria-label="Desk">
        <div className="list" tabIndex={-1}>
          <Helped />
          <Reasons queue={queue} reason={reason} />
          <Unknown parameter="reason" known={NAMES.map(({ name }) => name)} instead="all that waits is" />
          {queue.failures.map(({ error, refetch }) => (
            <Failure key={error.message} what="A part of the desk" error={error} retry={refetch} />
          ))}
          {items.length === 0 ? <Nothing queue={queue} reason={reason} /> : <Rows items={items} open={open} />}
          {queue.pages.map((page, place) => (
            <More key={place} pages={page} />
          ))}
          {!queue.isPending && <Kept items={kept} />}
        </div>
      </section>
      {opened && <Opened key={opened.id} item={opened} acts={actsOf(opened)} act={act} onClose={close} />}
      {open && !opened && !queue.isPending && <Gone onClose={close} />}
    </div>
  );
}

/** An address may name what somebody has decided since. */
function Gone({ onClose }: { readonly onClose: () => void }) {
  return (
    <DetailPane label="Item" onClose={onClose}>
      <Empty title="This waits no longer">
        <p>Somebody decided it, it is kept, or it changed.</p>
        <button type="button" onClick={onClose}>
          Back to the list
        </button>
      </Empty>
    </DetailPane>
  );
}

function Reasons({ queue, reason }: { readonly queue: Queue; readonly reason: Reason | null }) {
  return (
    <nav className="reasons" aria-label="Reasons">
      <Link className="chip" href={linkWith({ reason: null, item: null })} aria-current={reason === null ? "page" : undefined}>
        All that waits
      </Link>
      {NAMES.map(({ name, label }, place) => {
        const { count, more } = queue.counts[name];
        return (
          <Link
            key={name}
            className="chip"
            title={`${label} (${place + 1})`}
            href={linkWith({ reason: name, item: null })}
            aria-current={reason === name ? "page" : undefined}
          >
            {label} <strong>{more ? `more than ${whole(count)}` : whole(count)}</strong>
          </Link>
        );
      })}
    </nav>
  );
}

function lineOf(id: string): string {
  return `desk-${id}`;
}

function Rows({ items, open }: { readonly items: readonly Item[]; readonly open: string | null }) {
  const stop = items.some(({ id }) => id === open) ? open : items[0]?.id;
  return (
    <ol>
      {items.map(({ id, reason, title, said, facts, when }) => (
        <ListRow
          key={id}
          line={lineOf(id)}
          href={linkWith({ item: id })}
          open={id === open}
          stop={id === stop}
          title={title}
          marks={<span className={`why ${reason}`}>{NAMES.find(({ name }) => name === reason)?.label}</span>}
          excerpt={said}
          facts={facts.map((fact) => (
            <span key={fact}>
              <OneLine text={fact} />
            </span>
          ))}
          when={when}
        />
      ))}
    </ol>
  );
}

function Nothing({ queue, reason }: { readonly queue: Queue; readonly reason: Reason | null }) {
  if (queue.isPending) return <Loading what="what waits" />;
  return (
    <Empty title={reason === null ? "Nothing waits for you" : "Nothing here"}>
      <p>
        Severe issues that come back, memories that harm, texts that the scan holds back, what people rated down, possible lessons and
        questions without an answer appear here.
      </p>
    </Empty>
  );
}

function Kept({ items }: { readonly items: readonly Item[] }) {
  const { workspace } = useService();
  if (items.length === 0) return null;
  return (
    <p className="muted kept">
      {items.length === 1 ? "1 item is kept" : `${whole(items.length)} items are kept`} in this browser until something about it changes.{" "}
      <button type="button" className="quiet" onClick={() => forget(items.map(({ id }) => keyOf(workspace, id)))}>
        Show
      </button>
    </p>
  );
}

const KEEP: Act = { key: "e", label: "Keep", does: "keep" };

/** What can be done with an item, by one key each. */
function actsOf(item: Item | undefined): readonly Act[] {
  switch (item?.opens) {
    case "proposal":
      return [
        ...(item.proposal.change === "graduate" ? [] : [{ key: "a", label: "Accept", does: "accept" } as const]),
        { key: "#", label: "Decline", does: "decline" },
        KEEP,
      ];
    case "memory":
      if (item.reason === "deleted") return [{ key: "r", label: "Restore", does: "restore" }];
      if (item.reason === "superseded") return [{ key: "r", label: "Restore", does: "reinstate" }];
      return [
        ...(item.reason === "held" ? [{ key: "r", label: "Release", does: "release" } as const] : []),
        { key: "#", label: "Delete", does: "delete" },
        KEEP,
      ];
    default:
      return item ? [KEEP] : [];
  }
}

/** Does one thing with an item; then the next row is open and has the focus. */
function useActs(ids: readonly string[]): (act: Act, item: Item) => void {
  const decision = useDecision();
  const cue = useCueAction("restore");
  const { workspace } = useService();
  const changes = {
    delete: useChange("delete"),
    restore: useChange("restore"),
    reinstate: useChange("reinstate"),
    release: useChange("release"),
  };
  return ({ does }, item) => {
    const place = ids.indexOf(item.id);
    const next = ids[place + 1] ?? ids[place - 1] ?? null;
    const goOn = () => {
      changeAddress({ item: next }, { replace: true });
      requestAnimationFrame(() => next && focusLine(lineOf(next)));
    };
    if (does === "keep") {
      const name = keyOf(workspace, item.id);
      keep(name, item.state);
      notify("Kept until something changes", async () => forget([name]));
      goOn();
    } else if (item.opens === "proposal") {
      decision.mutate({ proposal: item.proposal, accept: does === "accept", artifact: "" }, { onSuccess: goOn });
    } else if (item.opens === "memory" && item.kind === "cue" && (does === "restore" || does === "reinstate")) {
      // Else its text would be back, but it would not fire.
      cue.mutate(item.memory, { onSuccess: goOn });
    } else if (item.opens === "memory" && does in changes) {
      changes[does as keyof typeof changes].mutate([item.memory], { onSuccess: goOn });
    }
  };
}
