/** The client of Priors, the memory service for agent pipelines. */

export { Client, type ClientOptions } from "./client.js";
export {
  ConnectionFailed,
  InvalidRequest,
  NotFound,
  PriorsError,
  type Problem,
  ProblemError,
  Refused,
  ServiceFailed,
  Unauthorized,
  UnreadableAnswer,
} from "./errors.js";
export { ROUTES } from "./routes.js";
export { Run, type RunOptions } from "./run.js";
export type { AdminOperations, Answer, Arguments, CallOptions, Operations, Schemas } from "./types.js";
