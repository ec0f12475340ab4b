/**
 * The client. Every operation of the service is a method of it, by its name:
 * `memories.create_batch` is `client.memories.createBatch(…)`. What a path names comes first, then
 * the fields of the query or the body as one object, then options. Answers are plain objects.
 */
import { Operations } from "./operations.js";
import { RETRIES, type Retries } from "./retries.js";
import type { Schemas } from "./shapes.js";
import { headerText, Transport } from "./transport.js";
import { waitFor, type Awaited, type WaitOptions } from "./waiting.js";

const BASE_URL = "http://127.0.0.1:8000";
const TIMEOUT_MS = 60_000;

/** Where the service is, who calls, and how patiently. */
export interface MnemeOptions {
  /** By default $MNEME_BASE_URL, else http://127.0.0.1:8000; with or without /v1. */
  baseUrl?: string;
  /**
   * An API key or an access token; by default $MNEME_API_KEY. Public operations need none: an empty
   * text stands for that.
   */
  apiKey?: string;
  /** Milliseconds for the beginning of an answer, and between two pieces of it; 60,000. */
  timeoutMs?: number;
  /** What differs from RETRIES. */
  retries?: Partial<Retries>;
  /** A fetch of your own: for a proxy, or for the binding of an edge runtime. */
  fetch?: typeof fetch;
}

/** A connection to the service. */
export class Mneme extends Operations {
  readonly #transport: Transport;

  /** Throws TypeError where `baseUrl` is no address, and for a key that no header can hold. */
  constructor(options: MnemeOptions = {}) {
    const transport = new Transport(
      addressOf(options.baseUrl ?? (fromEnvironment("MNEME_BASE_URL") || BASE_URL)),
      keyOf(options.apiKey),
      options.timeoutMs ?? TIMEOUT_MS,
      { ...RETRIES, ...given(options.retries) },
      options.fetch ?? ((input, init) => fetch(input, init)),
    );
    super(transport);
    this.#transport = transport;
  }

  /**
   * The memory, once searches find it; given by its id or by what a create answered. For a batch,
   * or several messages, waitJob does the same. Throws DeadlineExceeded and ProcessingFailed.
   */
  waitReady(memory: Awaited, options?: WaitOptions): Promise<Schemas["Memory"]> {
    return waitFor(this.#transport, memory, "/v1/memories/{id}", options);
  }

  /** The job, once it is completed; given by its id or by an answer that names it. */
  waitJob(job: Awaited, options?: WaitOptions): Promise<Schemas["JobView"]> {
    return waitFor(this.#transport, job, "/v1/memories/jobs/{id}", options);
  }

  /** The document, once its chunks are found; given by its id or by what the upload answered. */
  waitDocument(document: Awaited, options?: WaitOptions): Promise<Schemas["Document"]> {
    return waitFor(this.#transport, document, "/v1/documents/{id}", options);
  }
}

/** The address as it stands before /v1; one that ends so is taken as well. */
function addressOf(given: string): string {
  const url = given.trim();
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError(`${url} is no address; it begins with http:// or https://.`);
  }
  return url.replace(/\/+$/, "").replace(/\/v1$/, "").replace(/\/+$/, "");
}

/** The key, which may be in the surroundings; an empty text stands for none. */
function keyOf(given: string | undefined): string | undefined {
  if (given !== undefined) {
    return given ? headerText("apiKey", given) : undefined;
  }
  const surrounding = fromEnvironment("MNEME_API_KEY");
  return surrounding ? headerText("$MNEME_API_KEY", surrounding) : undefined;
}

/** The fields that have a value: undefined stands for the default. */
function given(retries: Partial<Retries> = {}): Partial<Retries> {
  return Object.fromEntries(Object.entries(retries).filter(([, value]) => value !== undefined));
}

/** A variable of the process, where there is a process. */
function fromEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}
