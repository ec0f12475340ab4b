/**
 * When a call that failed is made again, and after how long.
 *
 * What is repeated is safe to repeat: a call that changes nothing, or one with an Idempotency-Key,
 * which stays the same over all its attempts, so that the service takes it in once. Any other call
 * is repeated only when it cannot have had an effect: the connection was never made, or the service
 * refused it with 429.
 *
 * What is worth repeating: no answer, or an answer that names a Retry-After (409 while a twin is
 * running, 429, 502, 503, 504), or a 500, 502, 503 or 504 of something between here and the
 * service. Other answers stay what they are, however often one asks.
 */
import { ApiError, ConnectionFailed } from "./errors.js";

const PASSING = [409, 429, 502, 503, 504];
const GATEWAY_FAULTS = [500, 502, 503, 504];
// Many who are told the same second do not all come back in it.
const RETRY_AFTER_SPREAD = 0.25;

/** How patient a client is. */
export interface Retries {
  /** Attempts of one call, the first included; 1 repeats nothing. */
  attemptsMax: number;
  /** Longest wait before the second attempt; each further one is twice as long. */
  firstMs: number;
  /** Longest wait of its own accord. */
  waitMsMax: number;
  /** A service that asks for a longer wait gets none: the error is thrown at once. */
  retryAfterMsMax: number;
  /**
   * No attempt begins later after the first one, so that a service which takes calls and answers
   * none holds nobody up for longer than this and one time-out.
   */
  totalMsMax: number;
}

export const RETRIES: Retries = {
  attemptsMax: 14,
  firstMs: 250,
  waitMsMax: 8_000,
  retryAfterMsMax: 60_000,
  totalMsMax: 240_000,
};

/**
 * Milliseconds to wait after this attempt, the first being 1, before the next one; undefined where
 * there is no next one. Waits of its own accord are shorter by a random half.
 */
export function waitAfter(
  attempt: number,
  error: unknown,
  repeatable: boolean,
  retries: Retries,
): number | undefined {
  const isSafe = repeatable || hadNoEffect(error);
  if (attempt >= retries.attemptsMax || !passes(error) || !isSafe) {
    return undefined;
  }
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  if (asked > retries.retryAfterMsMax) {
    return undefined;
  }
  const longest = Math.min(retries.waitMsMax, retries.firstMs * 2 ** (attempt - 1));
  return Math.max(
    longest * (0.5 + 0.5 * Math.random()),
    asked * (1 + RETRY_AFTER_SPREAD * Math.random()),
  );
}

/** Whether the same call may succeed a moment later. */
function passes(error: unknown): boolean {
  if (error instanceof ApiError) {
    const isFromService = error.type !== undefined;
    return (
      (error.retryAfterMs !== undefined && PASSING.includes(error.status)) ||
      (GATEWAY_FAULTS.includes(error.status) && !isFromService)
    );
  }
  return error instanceof ConnectionFailed;
}

/** Whether the call that ended so has certainly changed nothing. */
function hadNoEffect(error: unknown): boolean {
  return (
    (error instanceof ApiError && error.status === 429) ||
    (error instanceof ConnectionFailed && !error.sent)
  );
}
