/** The filters as the address has them. */

import type { Listing } from "../../api/queries";
import type { Filters, NodeView } from "../../api/schema";
import { dayAfter, isDay, startOf } from "../../parts/days";
import { withMinus } from "../../parts/format";
import type { Changes } from "../../state/address";

const KINDS = ["observation", "chunk", "message", "cue", "note"] as const;
type Kind = (typeof KINDS)[number];

export const SORTS = [
  { value: "created desc", label: "Newest first" },
  { value: "created asc", label: "Oldest first" },
  { value: "occurred desc", label: "Latest event first" },
  { value: "score desc", label: "Best score first" },
  { value: "score asc", label: "Worst score first" },
  { value: "quality desc", label: "Best ratings first" },
  { value: "quality asc", label: "Worst ratings first" },
] as const;

export interface Asked extends Listing {
  readonly text: string;
  readonly memory: string | null;
}

/** The names of both ends, the least and the most. */
const RANGES = [
  [["min_quality", "max_quality"], -3, 3],
  [["min_score", "max_score"], 0, 10],
] as const;

export function readAsked(params: URLSearchParams): Asked {
  const [sort, order] = sortOf(params).split(" ") as [Asked["sort"], Asked["order"]];
  const [text, user, memory] = [params.get("q") ?? "", params.get("user"), params.get("memory")];
  return { text, filters: readFilters(params), user, sort, order, memory };
}

export function sortOf(params: URLSearchParams): string {
  const given = `${params.get("sort") ?? "created"} ${params.get("order") ?? "desc"}`;
  return SORTS.some(({ value }) => value === given) ? given : SORTS[0].value;
}

export function sortChanges(value: string): Changes {
  const [sort = "", order = ""] = value.split(" ");
  return value === SORTS[0].value ? { sort: null, order: null } : { sort, order };
}

function readFilters(params: URLSearchParams): Filters {
  const ranges = RANGES.flatMap(([names, least, most]) => names.map((name) => [name, numberOf(params.get(name), least, most)] as const));
  const since = params.get("since") ?? "";
  const until = params.get("until") ?? "";
  return {
    kinds: params.getAll("kind").filter(isKind),
    task_types: params.getAll("task_type"),
    verdicts: params.getAll("verdict"),
    tags: params.getAll("tag"),
    source: params.get("source") ?? "",
    ...(isDay(since) ? { since: startOf(since) } : {}),
    ...(isDay(until) ? { until: dayAfter(until) } : {}),
    ...Object.fromEntries(ranges.filter(([, value]) => value !== null)),
  };
}

function numberOf(text: string | null, least: number, most: number): number | null {
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return value >= least && value <= most ? value : null;
}

/** Returns true if the list would show this memory. Its time is not compared here. */
export function passes(node: NodeView, { filters, user }: Pick<Asked, "filters" | "user">): boolean {
  const { kinds, task_types, verdicts, tags, source, min_quality, max_quality, min_score, max_score } = filters;
  const among = (chosen: readonly string[] | null | undefined, value: string) => !chosen?.length || chosen.includes(value);
  const between = (value: number | null, least: number | null | undefined, most: number | null | undefined) =>
    (least == null || (value !== null && value >= least)) && (most == null || (value !== null && value <= most));
  return (
    among(kinds, node.kind) &&
    among(task_types, node.kind === "observation" ? node.task_type : "") &&
    among(verdicts, node.verdict) &&
    (tags ?? []).every((tag) => node.tags.includes(tag)) &&
    (!source || globOf(source).test(node.source)) &&
    (user === null || node.user === user) &&
    between(node.quality, min_quality, max_quality) &&
    between(node.final_score, min_score, max_score)
  );
}

/** A path that may begin in any folder, as the service reads it: `*` within a name, `**` across folders, `?` one character. */
export function globOf(pattern: string): RegExp {
  const pieces = pattern
    .replace(/^\/+/, "")
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((piece) => GLOB[piece] ?? piece.replace(/[.+^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(^|/)${pieces.join("")}$`, "su");
}

const GLOB: Readonly<Record<string, string>> = { "**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" };

function isKind(value: string): value is Kind {
  return (KINDS as readonly string[]).includes(value);
}

/** Returns true if the value is valid for the filter. */
export function isRead(name: string, value: string): boolean {
  if (name === "kind") return isKind(value);
  if (name === "since" || name === "until") return isDay(value);
  const range = RANGES.find(([names]) => (names as readonly string[]).includes(name));
  return !range || numberOf(value, range[1], range[2]) !== null;
}

const NAMES: Readonly<Record<string, string>> = {
  kind: "Kind:",
  task_type: "Task type:",
  verdict: "Verdict:",
  tag: "Tag:",
  user: "User:",
  source: "Source:",
  since: "Dated from",
  until: "Dated to",
  min_quality: "Quality ≥",
  max_quality: "Quality ≤",
  min_score: "Score ≥",
  max_score: "Score ≤",
};

interface Chip {
  readonly name: string;
  readonly value: string;
  readonly label: string;
  readonly inForce: boolean;
  /** The address without it. */
  readonly without: Changes;
}

export function chipsOf(params: URLSearchParams): readonly Chip[] {
  return Object.entries(NAMES).flatMap(([name, shown]) =>
    params.getAll(name).map((value) => ({
      name,
      value,
      label: `${shown} ${/^m(in|ax)_/.test(name) ? withMinus(value) : value}`,
      inForce: isRead(name, value),
      without: { [name]: params.getAll(name).filter((other) => other !== value) },
    })),
  );
}

export const NO_FILTERS: Changes = Object.fromEntries(Object.keys(NAMES).map((name) => [name, null]));
