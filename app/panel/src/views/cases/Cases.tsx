import { useService } from "../../api/client";
import { KEPT } from "../../api/queries";
import type { CaseSummary } from "../../api/schema";
import { counted, whole } from "../../parts/format";
import { ListPane, ListRow } from "../../parts/list";
import { DetailPane } from "../../parts/pane";
import { SearchField } from "../../parts/SearchField";
import { Empty } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkWith, useAddress } from "../../state/address";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { CaseDetail } from "./CaseDetail";

/** What is judged again and again: the case with that very name, then those with the most recurring issues first. */
export function Cases() {
  const { params } = useAddress();
  const open = params.get("case");
  const words = params.get("q") ?? "";
  const found = useService().useQuery("get", "/api/cases", {}, KEPT);
  const all = found.data ?? [];
  const rank = (one: CaseSummary) => (one.case === words.trim() ? Infinity : one.recurring_issues);
  const cases = all.filter((one) => isAbout(one, words)).sort((one, other) => rank(other) - rank(one));
  const ids = cases.map((one) => one.case);
  const close = useListKeys({
    parameter: "case",
    ids,
    open,
    lineOf,
    others: () => ({ one: null, other: null }),
  });
  const stop = ids.includes(open ?? "") ? open : ids[0];
  useTitle("Cases");
  return (
    <div className={`runs ${open ? "with-detail" : ""}`}>
      <ListPane
        name="cases"
        query={found}
        nothing={all.length === 0 && <Nothing />}
        toolbar={<SearchField text={words} label="Search cases" placeholder="Name or title" />}
      >
        <p className="list-count" role="status">
          {cases.length < all.length && `${whole(cases.length)} of `}
          {counted(all.length, "case", "cases")}
        </p>
        <ol>
          {cases.map((one) => (
            <Row key={one.case} item={one} open={one.case === open} stop={one.case === stop} />
          ))}
        </ol>
      </ListPane>
      {open && (
        <DetailPane label="Case" onClose={close}>
          <CaseDetail key={open} name={open} />
        </DetailPane>
      )}
    </div>
  );
}

function Nothing() {
  return (
    <Empty title="No cases yet">
      <p>A case appears here once a report or a run judges it: a version, a score, and what it faults.</p>
    </Empty>
  );
}

function isAbout({ case: name, title }: CaseSummary, words: string): boolean {
  return `${name} ${title}`.toLowerCase().includes(words.trim().toLowerCase());
}

function lineOf(name: string): string {
  return `case-${name}`;
}

function Row({ item, open, stop }: { readonly item: CaseSummary; readonly open: boolean; readonly stop: boolean }) {
  return (
    <ListRow
      line={lineOf(item.case)}
      href={linkWith({ case: item.case, one: null, other: null })}
      open={open}
      stop={stop}
      title={item.title || item.case}
      marks={item.recurring_issues > 0 && <span className="why back">{item.recurring_issues} recurring</span>}
      facts={
        <>
          <span className="kind name">
            <OneLine text={item.case} />
          </span>
          <span>{counted(item.versions, "version", "versions")}</span>
          <span>{counted(item.open_issues, "open issue", "open issues")}</span>
        </>
      }
      when={item.judged_at}
    />
  );
}
