/** Mneme from TypeScript: every operation, typed, wherever there is fetch. See client.ts. */
export { Mneme, type MnemeOptions } from "./client.js";
export {
  ApiError,
  ConnectionFailed,
  DeadlineExceeded,
  MnemeError,
  NotGenuine,
  ProcessingFailed,
  UnreadableAnswer,
  type ApiErrorParts,
  type ErrorCode,
  type Finding,
} from "./errors.js";
export { Listing, type Page } from "./listing.js";
export type { Operations } from "./operations.js";
export { RETRIES, type Retries } from "./retries.js";
export type { CompletionChunk, Query, Schemas, WebhookEvent } from "./shapes.js";
export { Stream } from "./streams.js";
export type { CallOptions, Keyed, Matching, Preferring } from "./transport.js";
export type { FileContent, UploadFields } from "./uploads.js";
export type { Awaited, WaitOptions } from "./waiting.js";
export { verifyWebhook, type VerifyOptions } from "./webhooks.js";
