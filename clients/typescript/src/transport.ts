/**
 * From a call to a decoded answer: the one place that speaks HTTP, by openapi-fetch. It knows no
 * operation.
 */
import createClient, { type Client } from "openapi-fetch";

import { ConnectionFailed, errorOf, UnreadableAnswer, type MnemeError } from "./errors.js";
import { waitAfter, type Retries } from "./retries.js";

/** What every call takes besides its fields. */
export interface CallOptions {
  /** Ends the call; what is thrown is the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds for the beginning of an answer, and between two pieces of it. */
  timeoutMs?: number;
}

/** Of a call that changes something. */
export interface Keyed extends CallOptions {
  /**
   * However often a call with this key is sent, it takes effect once. Each call has a new one
   * unless you give yours, which is worth it where another process may make the same call again.
   */
  idempotencyKey?: string;
}

/** Of a call that may leave work for later. */
export interface Preferring {
  /** `respond-async`, or `wait=N` to wait up to N seconds for a job. */
  prefer?: string;
}

/** Of a call that changes something which has a version. */
export interface Matching {
  /** The version the change is meant for; 412 where it is another. */
  ifMatch?: number | string;
}

/** One call, apart from where to and with which credential. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With its parameters in braces. */
  path: string;
  in?: Record<string, string>;
  query?: object;
  body?: unknown;
  /** How the answer is read. */
  as: "json" | "text" | "arrayBuffer" | "stream";
  accept?: string;
  /** Whether it has an Idempotency-Key. */
  keyed?: boolean;
  /** Whether a second attempt may change something that the first one had changed. */
  once?: boolean;
  options: Keyed & Preferring & Matching;
  /** Milliseconds since 1970 after which no further attempt begins. */
  until?: number;
}

// What Node says of a connection that was never made. Other runtimes do not tell.
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

/** Where to, as whom, how patiently. */
export class Transport {
  readonly #http: Client<Record<string, never>>;
  readonly #fetch: typeof fetch;
  readonly #retries: Retries;
  readonly #timeoutMs: number;

  constructor(
    baseUrl: string,
    apiKey: string | undefined,
    timeoutMs: number,
    retries: Retries,
    fetcher: typeof fetch,
  ) {
    this.#http = createClient({
      baseUrl,
      headers: apiKey ? { Authorization: `Bearer ${apiKey}` } : {},
    });
    this.#fetch = fetcher;
    this.#retries = retries;
    this.#timeoutMs = timeoutMs;
  }

  /** The answer of a success. Throws ApiError, ConnectionFailed, and the reason of a signal. */
  async send<T>(call: Call): Promise<T> {
    const headers = headersOf(call);
    check(call);
    const until = Math.min(call.until ?? Infinity, Date.now() + this.#retries.totalMsMax);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return (await this.#attempt(call, headers)) as T;
      } catch (error) {
        const ms = waitAfter(attempt, error, !call.once, this.#retries);
        if (ms === undefined || Date.now() + ms > until) {
          throw error;
        }
        await pause(ms, call.options.signal);
      }
    }
  }

  async #attempt(call: Call, headers: Record<string, string>): Promise<unknown> {
    const watch = new Watch(call, call.options.timeoutMs ?? this.#timeoutMs);
    try {
      const { data, error, response } = await this.#http.request(
        call.method.toLowerCase() as never,
        call.path as never,
        {
          params: { path: call.in, query: call.query },
          body: call.body,
          bodySerializer: serialized,
          headers,
          parseAs: call.as === "json" ? "text" : call.as,
          redirect: "manual", // followed, a 301 would turn a write into a question
          signal: watch.signal,
          fetch: (request: Request) => watch.over(this.#fetch(request)),
        } as never,
      );
      if (!response.ok) {
        throw errorOf(response.status, error, response.headers);
      }
      return read(call, data, response.headers);
    } catch (error) {
      watch.end();
      throw error;
    }
  }
}

/** The clock of one attempt: it begins anew with each piece of the answer. */
class Watch {
  readonly #controller = new AbortController();
  readonly #call: Call;
  readonly #ms: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isLate = false;

  constructor(call: Call, ms: number) {
    this.#call = call;
    this.#ms = ms;
    call.options.signal?.throwIfAborted();
    call.options.signal?.addEventListener("abort", this.#leave);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The response, whose body is watched to its end. */
  async over(response: Promise<Response>): Promise<Response> {
    const { body, status, statusText, headers, type } = await this.#inTime(response);
    if (type === "opaqueredirect") {
      throw new UnreadableAnswer(this.#call, "a redirect"); // all that a browser tells of one
    }
    if (body === null) {
      this.end();
      return new Response(null, { status, statusText, headers });
    }
    const reader = body.getReader();
    const watched = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = await this.#inTime(reader.read());
        if (done) {
          this.end();
          controller.close();
        } else {
          controller.enqueue(value);
        }
      },
      cancel: (reason) => {
        this.end();
        return reader.cancel(reason);
      },
    });
    return new Response(watched, { status, statusText, headers });
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#call.options.signal?.removeEventListener("abort", this.#leave);
  }

  /** Throws ConnectionFailed, or the reason of the caller's signal. */
  async #inTime<T>(piece: Promise<T>): Promise<T> {
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#controller.abort();
    }, this.#ms);
    try {
      return await piece;
    } catch (error) {
      this.end();
      if (this.#call.options.signal?.aborted) {
        throw this.#call.options.signal.reason;
      }
      throw this.#failure(error);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  #failure(error: unknown): MnemeError {
    const cause = (error as { cause?: { code?: string; message?: string } }).cause;
    if (cause?.code?.startsWith("Z_")) {
      return new UnreadableAnswer(this.#call, "not compressed as it says", { cause: error });
    }
    const why = this.#isLate
      ? `nothing came within ${this.#ms} ms`
      : cause?.message || cause?.code || (error instanceof Error ? error.message : String(error));
    return new ConnectionFailed(
      `${this.#call.method} ${this.#call.path} got no answer: ${why}.`,
      !NOT_SENT.includes(cause?.code ?? ""),
      { cause: error },
    );
  }

  readonly #leave = () => this.#controller.abort(this.#call.options.signal?.reason);
}

/** Throws TypeError for an id that is none, and for an empty text, which would mean everybody's. */
function check(call: Call): void {
  for (const id of Object.values(call.in ?? {})) {
    if (typeof id !== "string") {
      throw new TypeError(`An id is a text, and not ${id}.`);
    }
    if (["", ".", ".."].includes(id)) {
      throw new TypeError(`${JSON.stringify(id)} names nothing.`);
    }
  }
  const ids = isObject(call.body) ? Object.entries(call.body) : [];
  const named = [...Object.entries(call.query ?? {}), ...ids.filter(([name]) => /_id$/.test(name))];
  for (const [name, value] of named) {
    if (typeof value === "string" && !value.trim()) {
      throw new TypeError(`${name} is an empty text; leave it out, or say which.`);
    }
  }
}

/** A body as JSON, or the form that it is. Throws TypeError for a number that JSON does not have. */
function serialized(body: unknown): string | FormData {
  if (body instanceof FormData) {
    return body;
  }
  return JSON.stringify(body, (name, value: unknown) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new TypeError(`${name} is ${value}, which JSON does not have.`);
    }
    return value;
  });
}

/** What a success holds. Throws UnreadableAnswer. */
function read(call: Call, data: unknown, headers: Headers): unknown {
  if (call.as === "json") {
    let found: unknown;
    try {
      found = JSON.parse(data as string);
    } catch (error) {
      throw new UnreadableAnswer(call, "no JSON", { cause: error });
    }
    if (!isObject(found) || Array.isArray(found)) {
      throw new UnreadableAnswer(call, "no JSON object");
    }
    return found;
  }
  const type = headers.get("content-type")?.split(";")[0]?.trim();
  if (call.as === "stream" && (!data || (type && type !== call.accept))) {
    throw new UnreadableAnswer(call, `${type || "nothing"} instead of a stream`);
  }
  return data;
}

/** Whether a value has fields. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/**
 * A text as a header can hold it: without the white space around it. Throws TypeError, which does
 * not repeat the text, for an empty one and for one with other characters.
 */
export function headerText(name: string, value: string): string {
  const text = value.trim();
  if (!text) {
    throw new TypeError(`${name} is an empty text.`);
  }
  if (!/^[\x20-\x7e]+$/.test(text)) {
    throw new TypeError(`${name} holds a character that a header cannot have: no visible ASCII.`);
  }
  return text;
}

function headersOf(call: Call): Record<string, string> {
  const { idempotencyKey, prefer, ifMatch } = call.options;
  const headers: Record<string, string> = { Accept: call.accept ?? "application/json" };
  if (call.keyed) {
    headers["Idempotency-Key"] = headerText("idempotencyKey", idempotencyKey ?? newKey());
  }
  if (prefer !== undefined) {
    headers["Prefer"] = prefer;
  }
  if (ifMatch !== undefined) {
    headers["If-Match"] = typeof ifMatch === "number" ? `"${ifMatch}"` : ifMatch;
  }
  return headers;
}

/** 32 hexadecimal digits. Unlike randomUUID, it works on a page that came without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resolves after so many milliseconds. Throws the signal's reason as soon as it is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    signal?.addEventListener("abort", leave, { once: true });
  });
}
