/**
 * Everything that can go wrong.
 *
 *     MnemeError
 *     ├── ApiError           the service answered, and not with a success
 *     ├── ConnectionFailed   no answer, or half of one, or none in time
 *     ├── DeadlineExceeded   something did not become ready in time
 *     ├── ProcessingFailed   something became `failed` instead of ready
 *     ├── UnreadableAnswer   a success, but not as this service answers
 *     └── NotGenuine         a webhook request whose signature does not hold
 */
import type { components } from "./schema.js";

/** What the service calls its errors. */
export type ErrorCode = NonNullable<components["schemas"]["Error"]["error"]["code"]>;

/** One finding of a 422. */
export interface Finding {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** Any failure that this package reports. */
export class MnemeError extends Error {
  override name = "MnemeError";
}

/** What an ApiError is made of. */
export interface ApiErrorParts {
  /** The HTTP status. */
  status: number;
  /** The service's code, such as `validation_error`; absent where none fits. */
  code?: ErrorCode | undefined;
  /** The category, such as `rate_limit_error`; absent where something in between answered. */
  type?: string | undefined;
  /** The offending parameter. */
  param?: string | undefined;
  /** The findings of a 422. */
  details?: Finding[] | undefined;
  /** Names the request in the service's logs. */
  requestId?: string | undefined;
  /** How long the service asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The decoded answer, where it is JSON. */
  body?: unknown;
}

export interface ApiError extends ApiErrorParts {}

/** An answer that is not a success. `message` says what happened and what to do about it. */
export class ApiError extends MnemeError {
  override name = "ApiError";

  constructor(message: string, parts: ApiErrorParts) {
    const named = parts.code ? `${parts.status} ${parts.code}` : `${parts.status}`;
    const request = parts.requestId ? `, request ${parts.requestId}` : "";
    super(`${message} (${named}${request})`);
    Object.assign(this, parts);
  }
}

/**
 * The service could not be reached, or the connection ended before the answer did, or nothing came
 * in time. `cause` is what fetch said.
 */
export class ConnectionFailed extends MnemeError {
  override name = "ConnectionFailed";

  /** @param sent whether the request may have reached the service */
  constructor(
    message: string,
    readonly sent: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What was waited for was not there in time. `last` is what the service said of it last. */
export class DeadlineExceeded extends MnemeError {
  override name = "DeadlineExceeded";

  constructor(
    message: string,
    readonly last?: unknown,
  ) {
    super(message);
  }
}

/** What was waited for has failed for good. `last` is what the service says of it. */
export class ProcessingFailed extends MnemeError {
  override name = "ProcessingFailed";

  constructor(
    message: string,
    readonly last: unknown,
  ) {
    super(message);
  }
}

/**
 * Something answered with a success, and not as this service does: at the address is another
 * server, or something in between speaks for it. What the request asked for may have happened.
 */
export class UnreadableAnswer extends MnemeError {
  override name = "UnreadableAnswer";

  constructor(call: { method: string; path: string }, why: string, options?: ErrorOptions) {
    const answered = `${call.method} ${call.path} was answered, but not as this service does`;
    super(`${answered} (${why}): is baseUrl right?`, options);
  }
}

/** A webhook request that was not signed with this secret, or too long ago; see `message`. */
export class NotGenuine extends MnemeError {
  override name = "NotGenuine";
}

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

/**
 * The error of a status and a decoded body: the service's envelope, its flat body of a missing
 * feature, or anything else.
 */
export function errorOf(status: number, body: unknown, headers: Headers): ApiError {
  let said: Json = {};
  if (isObject(body) && typeof body["error"] === "string") {
    said = { code: body["error"], message: body["message"], type: "permission_error" };
  } else if (isObject(body) && isObject(body["error"])) {
    said = body["error"];
  }
  const message = said["message"] as string | undefined;
  return new ApiError(message || ownWords(status, headers.get("location")), {
    status,
    code: (said["code"] as ErrorCode | null) ?? undefined,
    type: (said["type"] as string | null) ?? undefined,
    param: (said["param"] as string | null) ?? undefined,
    details: (said["details"] as Finding[] | null) ?? undefined,
    requestId: (said["request_id"] as string | null) ?? headers.get("x-request-id") ?? undefined,
    retryAfterMs: retryAfterMs(headers.get("retry-after"), Date.now()),
    body: isObject(body) ? body : undefined,
  });
}

function ownWords(status: number, location: string | null): string {
  if (status < 300 || status > 399 || !location) {
    return `The answer was ${status}.`;
  }
  const elsewhere = location.split("?")[0];
  return `The answer was ${status}: what is asked for lies at ${elsewhere}, so that baseUrl must be corrected.`;
}

/** The error that an event of a stream reports; undefined where it reports none. */
export function errorOfEvent(body: unknown): ApiError | undefined {
  if (!isObject(body) || !body["error"]) {
    return undefined;
  }
  const status = isObject(body["error"]) ? body["error"]["status_code"] : undefined;
  return errorOf(typeof status === "number" ? status : 502, body, new Headers());
}

/**
 * The milliseconds that a Retry-After header asks for, given as a number of seconds or as a date.
 *
 * @param now milliseconds since 1970
 */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  if (!header) {
    return undefined;
  }
  if (/^\d+$/.test(header)) {
    return Number(header) * 1000;
  }
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
