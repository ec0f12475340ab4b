/**
 * Is this request really from the service? What a webhook receiver must know before it believes a
 * word.
 *
 *     const event = await verifyWebhook(await request.arrayBuffer(), request.headers, secret);
 *
 * Two forms of signature are sent, and either one is enough: the service's own and that of Standard
 * Webhooks.
 *
 *     X-Webhook-Signature-256            sha256=<hex HMAC-SHA256 of "<X-Webhook-Timestamp>.<body>"
 *                                        under the secret>
 *     X-Webhook-Signature-256-Previous   the same under the secret before, for a while after a
 *                                        rotation
 *     webhook-signature                  v1,<base64 HMAC-SHA256 of
 *                                        "<webhook-id>.<webhook-timestamp>.<body>">, several parted
 *                                        by spaces
 *
 * So a receiver keeps working with its old secret until the grace of a rotation ends, and may be
 * given both at once.
 */
import { NotGenuine } from "./errors.js";
import type { WebhookEvent } from "./shapes.js";

const TOLERANCE_SECONDS = 300;
const TIMESTAMP = /^[0-9]{1,12}$/;
const SECRET_PREFIX = "whsec_";

type Bytes = Uint8Array<ArrayBuffer>;

/** How strict verifyWebhook is. */
export interface VerifyOptions {
  /** How long ago it may have been signed; 300 by default. */
  toleranceSeconds?: number;
  /** Seconds since 1970; by default the clock's. */
  now?: number;
}

/**
 * The event in a received request. Throws NotGenuine.
 *
 * @param body as it came: bytes, or the text they are in UTF-8; what was parsed and written again
 *   is another
 * @param headers a Headers, or an object with names in any case
 * @param secret the webhook's signing secret, or several that may count
 */
export async function verifyWebhook(
  body: string | ArrayBuffer | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const found = headers instanceof Headers ? headers : headersOf(headers);
  const bytes = typeof body === "string" ? encoded(body) : new Uint8Array(body);
  const secrets = typeof secret === "string" ? [secret] : secret;
  const now = options.now ?? Date.now() / 1000;
  const tolerance = options.toleranceSeconds ?? TOLERANCE_SECONDS;
  const own = await ownForm(bytes, found, secrets, now, tolerance);
  const standard = await standardForm(bytes, found, secrets, now, tolerance);
  if (own !== undefined && standard !== undefined) {
    throw new NotGenuine(own);
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as WebhookEvent;
  } catch {
    throw new NotGenuine("The body is signed but is no JSON.");
  }
}

/** Why the service's own form does not hold; undefined where it does. */
async function ownForm(
  body: Bytes,
  headers: Headers,
  secrets: readonly string[],
  now: number,
  tolerance: number,
): Promise<string | undefined> {
  const stamp = headers.get("x-webhook-timestamp") ?? "";
  const given = ["x-webhook-signature-256", "x-webhook-signature-256-previous"].flatMap((name) => {
    const value = headers.get(name) ?? "";
    return /^sha256=[0-9a-f]{64}$/.test(value) ? [hex(value.slice("sha256=".length))] : [];
  });
  const keys = secrets.map(encoded).filter((key) => key.length > 0);
  const signed = joined(encoded(`${stamp}.`), body);
  return untimely(stamp, now, tolerance) ?? (await unsigned(signed, keys, given));
}

/** The same for Standard Webhooks, whose secrets are base64 after `whsec_`, or else text. */
async function standardForm(
  body: Bytes,
  headers: Headers,
  secrets: readonly string[],
  now: number,
  tolerance: number,
): Promise<string | undefined> {
  const stamp = headers.get("webhook-timestamp") ?? "";
  const given = (headers.get("webhook-signature") ?? "").split(/\s+/).flatMap((one) => {
    const signature = one.startsWith("v1,") ? base64(one.slice("v1,".length)) : undefined;
    return signature ? [signature] : [];
  });
  const keys = secrets.flatMap(keysOf);
  const signed = joined(encoded(`${headers.get("webhook-id") ?? ""}.${stamp}.`), body);
  return untimely(stamp, now, tolerance) ?? (await unsigned(signed, keys, given));
}

function untimely(stamp: string, now: number, tolerance: number): string | undefined {
  if (!TIMESTAMP.test(stamp)) {
    return "The timestamp is missing or no number.";
  }
  return Math.abs(now - Number(stamp)) <= tolerance
    ? undefined
    : `It was signed more than ${tolerance} seconds ago, or in the future.`;
}

/** Why none of the signatures fits any key. WebCrypto compares in constant time. */
async function unsigned(
  signed: Bytes,
  keys: readonly Bytes[],
  given: readonly Bytes[],
): Promise<string | undefined> {
  let fits = false;
  for (const bytes of keys) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
    for (const signature of given) {
      fits = (await crypto.subtle.verify("HMAC", key, signature, signed)) || fits;
    }
  }
  return fits ? undefined : "The signature does not fit body and secret.";
}

function keysOf(secret: string): Bytes[] {
  const text = secret.slice(SECRET_PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
  const decoded = secret.startsWith(SECRET_PREFIX) ? base64(text) : undefined;
  return [encoded(secret), ...(decoded ? [decoded] : [])].filter((key) => key.length > 0);
}

function headersOf(given: Record<string, string | string[] | undefined>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    try {
      headers.set(name, Array.isArray(value) ? value.join(" ") : (value ?? ""));
    } catch {
      // A value that no header can have signs nothing.
    }
  }
  return headers;
}

function encoded(text: string): Bytes {
  return new TextEncoder().encode(text);
}

function joined(first: Bytes, second: Bytes): Bytes {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

function hex(digits: string): Bytes {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function base64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
