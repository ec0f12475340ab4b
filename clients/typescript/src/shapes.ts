/** Names for what the OpenAPI document describes, and for what it cannot. */
import type { components, operations, webhooks } from "./schema.js";

/** What is sent and answered, by the names of the OpenAPI document: `Schemas["Memory"]`. */
export type Schemas = components["schemas"];

/** The query of an operation. */
export type Query<Name extends keyof operations> = NonNullable<
  operations[Name]["parameters"]["query"]
>;

type Told<Request> = Request extends {
  requestBody: { content: { "application/json": infer Event } };
}
  ? Event
  : never;

/** What a webhook is told; `event_type` says what `data` is. */
export type WebhookEvent = {
  [Kind in keyof webhooks]: Told<webhooks[Kind]["post"]>;
}[keyof webhooks];

/** A piece of a completion, as OpenAI's endpoints stream it; one near the end has `memory`. */
export interface CompletionChunk {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: {
    index: number;
    delta: { role?: string; content?: string | null; [field: string]: unknown };
    finish_reason: string | null;
  }[];
  memory?: Schemas["ChatReply"]["memory"];
  usage?: Record<string, unknown> | null;
  [field: string]: unknown;
}
