/** A run as a block: `priors.run(task, { agent }, async (run) => …)`. */

import type { Answer, Arguments, Operations, Values } from "./types.js";

/** What is known of a run at its beginning. Without a `run_id` it gets one of its own. */
export interface RunOptions {
  readonly agent?: string;
  readonly task_type?: string;
  readonly run_id?: string;
  readonly user?: string;
  /** The case that the run is a version of; it is warned of what earlier versions were marked down for. */
  readonly case?: string;
  readonly version?: string;
}

type Asks = Pick<Operations, "history" | "activate" | "check" | "recordRun" | "completeRun">;
type HistoryOptions = Pick<Arguments<"history">, "k" | "budget_tokens">;
type PlanOptions = Pick<Arguments<"activate">, "files">;
type EndOptions = Pick<Arguments<"completeRun">, "verdict" | "issues" | "wait">;

/** A run that is under way: what it asks for is logged under its id, and its end is stored with it. */
export class Run {
  readonly run_id: string;
  readonly #client: Asks;
  readonly #who: { readonly agent?: string; readonly user?: string };
  readonly #task_type: string;
  readonly #named: Values;
  #completed = false;

  constructor(
    client: Asks,
    readonly task: string,
    { agent, task_type = "", run_id, user, case: name, version }: RunOptions = {},
  ) {
    this.#client = client;
    this.#who = { ...(agent ? { agent } : {}), ...(user ? { user } : {}) };
    this.#task_type = task_type;
    this.#named = { ...(name ? { case: name } : {}), ...(version ? { version } : {}) };
    this.run_id = run_id ?? `run-${crypto.randomUUID()}`;
  }

  /** Records that the run has begun. */
  async begin(): Promise<void> {
    const { run_id, task } = this;
    const metadata = this.#named;
    await this.#client.recordRun({ ...this.#who, run_id, task, task_type: this.#task_type, metadata, started_at: now() });
  }

  /** Records that the run has ended, and by which error, where `complete` did not succeed. */
  async end(error?: unknown): Promise<void> {
    if (this.#completed) return;
    const metadata: Values = error === undefined ? {} : { error: String(error) };
    const user = this.#who.user ?? "";
    await this.#client.completeRun({ run_id: this.run_id, user, metadata, finished_at: now() });
  }

  /** Returns what earlier work found on a question; without one, on the run's task. */
  history(query = "", options: HistoryOptions = {}): Promise<Answer<"history">> {
    return this.#client.history({ ...options, ...this.#who, run_id: this.run_id, query: query || this.task });
  }

  /** Returns what was learnt about an act that is about to be done. */
  activate(plan: string, options: PlanOptions = {}): Promise<Answer<"activate">> {
    return this.#client.activate({ ...options, ...this.#who, run_id: this.run_id, plan });
  }

  /** Returns a verdict for each step of a plan. */
  check(plan: string, options: PlanOptions = {}): Promise<Answer<"check">> {
    return this.#client.check({ ...options, ...this.#who, run_id: this.run_id, task_type: this.#task_type, plan });
  }

  /** Stores what the run produced and how it was judged; by default it waits for what is remembered of it. */
  async complete(output: string, score?: number, { wait = true, ...judged }: EndOptions = {}): Promise<Answer<"completeRun">> {
    const saved = await this.#client.completeRun({
      ...judged,
      run_id: this.run_id,
      user: this.#who.user ?? "",
      output,
      ...(score === undefined ? {} : { final_score: score }),
      finished_at: now(),
      remember: true,
      wait,
    });
    this.#completed = true;
    return saved;
  }
}

function now(): string {
  return new Date().toISOString();
}
