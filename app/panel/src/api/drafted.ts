import type { components } from "./schema";

/** Draft of the routes' types, until they are generated. */

export interface SessionCue {
  readonly id: string;
  readonly kind: string;
  readonly message: number | null;
  readonly trigger: string;
  readonly lesson: string;
  readonly quote: string;
  readonly confidence: number;
  readonly consequence: number;
  readonly scope: string;
  readonly state: string;
}

export interface CueEvidence {
  readonly session: string;
  readonly message: number | null;
  readonly memory_id: string | null;
  readonly quote: string;
  readonly at: string | null;
}

export interface Cue {
  readonly id: string;
  readonly kind: string;
  readonly trigger: string;
  readonly lesson: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly confidence: number;
  readonly consequence: number;
  readonly scope: string;
  readonly quote: string;
  readonly trust: string;
  readonly origin: string;
  readonly state: string;
  readonly action_types: readonly string[];
  readonly files: readonly string[];
  readonly tags: readonly string[];
  readonly evidence: readonly CueEvidence[];
  readonly fired: number;
  readonly heeded: number;
  readonly ignored: number;
  readonly last_fired_at: string | null;
  readonly valid_from: string;
  readonly valid_until: string | null;
  readonly superseded_by: string | null;
  readonly disputed_by: readonly string[];
  readonly suspect: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface FiredCue {
  readonly id: string;
  readonly kind: string;
  readonly trigger: string;
  readonly lesson: string;
  readonly imperative: string;
  readonly reason: string;
  readonly checkpoint: string;
  readonly conflict_with: readonly string[];
  readonly score: number;
  readonly explain: Readonly<Record<string, number>>;
  readonly action_types: readonly string[];
}

export interface NearlyFired {
  readonly id: string;
  readonly kind: string;
  readonly lesson: string;
  readonly score: number;
  readonly reason: string;
}

export interface Activation {
  readonly markdown: string;
  readonly cues: readonly FiredCue[];
  readonly nearly: readonly NearlyFired[];
  readonly contradictions: readonly { readonly cue_id: string; readonly rejected: string; readonly statement: string }[];
  readonly activation_id: string;
  readonly action_types: readonly string[];
  readonly degraded: string;
  readonly took_ms: number;
  readonly tokens: number;
}

export interface ActivationInput {
  readonly plan: string;
  readonly files: readonly string[];
  readonly agent: string | null;
  readonly budget_tokens: number;
  readonly trial: boolean;
}

export type CueEdit = Partial<Pick<Cue, "kind" | "trigger" | "lesson" | "details" | "confidence" | "consequence" | "scope" | "action_types" | "files">>;

export interface CuePage {
  readonly cues: readonly Cue[];
  readonly next: string | null;
}

export interface Session extends Omit<components["schemas"]["SessionDetailView"], "cues"> {
  readonly cues: readonly SessionCue[];
}
