/**
 * Asking again until something is done, failed, or too late. The wait between two questions grows
 * from FIRST_MS to LONGEST_MS, a random part shorter each time.
 */
import { DeadlineExceeded, ProcessingFailed } from "./errors.js";
import { pause, type Transport } from "./transport.js";

const FIRST_MS = 50;
const LONGEST_MS = 1_000;
const GROWTH = 1.5;

/** What can be waited for: an id, or what the service answered to the call that made it. */
export type Awaited =
  | string
  | { id?: string | null; job_id?: string | null; status_url?: string | null };

/** How long to wait. */
export interface WaitOptions {
  /** Milliseconds; 60,000 by default. */
  deadlineMs?: number;
  signal?: AbortSignal;
}

interface State {
  processing_status?: string;
  status?: string;
  error?: { message?: string } | string | null;
}

/**
 * What the service says of a thing once it is completed. Throws DeadlineExceeded and
 * ProcessingFailed.
 *
 * @param path where to ask after it by its id, which stands in braces
 */
export async function waitFor<T>(
  transport: Transport,
  thing: Awaited,
  path: string,
  options: WaitOptions = {},
): Promise<T> {
  const deadlineMs = options.deadlineMs ?? 60_000;
  const until = Date.now() + deadlineMs;
  const at = addressOf(thing, path);
  for (let longest = FIRST_MS; ; longest = Math.min(LONGEST_MS, longest * GROWTH)) {
    const timeoutMs = Math.max(until - Date.now(), FIRST_MS);
    const answer = await transport.send<State>({
      method: "GET",
      ...at,
      as: "json",
      until,
      options: { timeoutMs, signal: options.signal },
    });
    const state = answer.processing_status ?? answer.status;
    if (state === "completed") {
      return answer as T;
    }
    if (state === "failed") {
      const reason = typeof answer.error === "object" ? answer.error?.message : answer.error;
      throw new ProcessingFailed(`It has failed: ${reason || "no reason given"}`, answer);
    }
    const ms = longest * (0.5 + 0.5 * Math.random());
    if (Date.now() + ms > until) {
      throw new DeadlineExceeded(`It was not done within ${deadlineMs} ms.`, answer);
    }
    await pause(ms, options.signal);
  }
}

function addressOf(thing: Awaited, path: string): { path: string; in: Record<string, string> } {
  if (typeof thing !== "string" && thing.status_url) {
    if (!thing.status_url.startsWith("/v1/")) {
      throw new TypeError(`${thing.status_url} is no path of the service.`);
    }
    return { path: thing.status_url, in: {} };
  }
  const id = typeof thing === "string" ? thing : (thing.id ?? thing.job_id);
  if (!id) {
    throw new TypeError("It has neither a status_url nor an id to ask after.");
  }
  return { path, in: { id } };
}
