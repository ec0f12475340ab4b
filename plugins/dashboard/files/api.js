// The public API as the account that is signed in, and the session itself.

const TIMINGS_MAX = 200;
const ANSWER_SECONDS_MAX = 60;
export const LONG_SECONDS_MAX = 300; // of what a language model writes, and of what takes many records in
const UPLOAD_SECONDS_MAX = 3_600;
const [UNAUTHENTICATED, SERVER_ERROR] = [401, 500];
const KEY_HEADER = "Idempotency-Key";
const KEY_BYTES = 16;

export class ApiError extends Error {
  // status 0: the service was not reached, or has not answered.
  constructor(status, error = {}, retryAfter = null) {
    super(error.message || (status ? `The service answered ${status}.` : "The service cannot be reached."));
    Object.assign(this, {
      status,
      code: error.code ?? null,
      param: error.param ?? null,
      details: error.details ?? [],
      requestId: error.request_id ?? null,
      retryAfter,
    });
  }
}

export class Session extends EventTarget {
  account = null;
  csrf = null;
  // why ("ended" or "stale") -> promise of whether somebody signed in again, to the same account.
  renew = async () => false;
  #renewing = null;
  chat = false; // whether the service has a language model to chat with
  registration = "open"; // who may sign up: "open", "mailed", "invite" or "closed"
  // {at: ms, seconds, status, method, path}: what each call of this page took in the service, by its own clock.
  timings = [];

  async load() {
    this.#take(await this.#own("GET"));
    return this.account;
  }

  // {email, password}, and full_name to sign up.
  async signIn(credentials) {
    this.#take(await this.#own("POST", credentials));
    return this.account;
  }

  async signOut() {
    try {
      await this.#own("DELETE");
    } catch (error) {
      if (!(await this.mended(error, this.csrf))) throw error;
      await this.#own("DELETE");
    }
    this.end();
  }

  // Whether the account of this page is signed in in this browser, be it since a moment ago and in another tab. Says when it is another.
  async seen() {
    const now = await this.#own("GET");
    if (!now.account) return false;
    const same = now.account.user_id === this.account?.user_id;
    if (same) this.#take(now);
    else this.dispatchEvent(new CustomEvent("changed", { detail: now.account }));
    return same;
  }

  // Whether what refused a call of this session is out of the way, so that it can be made again. csrf: what the call was made with.
  async mended(error, csrf) {
    const other = error.details.some(({ type }) => type === "other_session");
    if ((other || error.status === UNAUTHENTICATED) && this.csrf && csrf !== this.csrf) return true;
    if (other) {
      let changed = null;
      const note = ({ detail }) => (changed = detail);
      this.addEventListener("changed", note, { once: true });
      const same = await this.seen();
      this.removeEventListener("changed", note);
      if (changed) error.message = `${changed.email} is signed in in this browser now. Load the page again.`;
      return same || (!changed && this.#asked("ended"));
    }
    if (error.status === UNAUTHENTICATED) return this.#asked("ended");
    if (!isStale(error)) return false;
    if (await this.#asked("stale")) return true;
    throw new DOMException("Nobody signed in again.", "AbortError");
  }

  // Somebody is asked once, however many calls wait for it.
  async #asked(why) {
    if (!this.account) return false;
    this.#renewing ??= this.renew(why).finally(() => (this.#renewing = null));
    if (await this.#renewing) return true;
    if (why === "ended" && this.account) this.end("Your session is over. Sign in again to go on.");
    return false;
  }

  // Forget who was signed in, and say so; the page shows the sign-in form.
  end(reason = null) {
    this.#take({ account: null, csrf: null });
    this.dispatchEvent(new CustomEvent("ended", { detail: { reason } }));
  }

  #take({ account, csrf, chat = false, registration = this.registration }) {
    this.account = account;
    this.csrf = csrf;
    this.chat = chat;
    this.registration = registration;
  }

  async #own(method, body) {
    const headers = this.csrf ? { "X-Mneme-CSRF": this.csrf } : {};
    if (body) headers["Content-Type"] = "application/json";
    const answer = await reach("/dashboard/session", { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw refusal(answer);
    return answer.status === 204 ? { account: null, csrf: null } : JSON.parse(answer.text);
  }

  note(method, path, answer, seconds) {
    this.timings.push({ at: Date.now(), method, path, status: answer.status, seconds });
    if (this.timings.length > TIMINGS_MAX) this.timings.shift();
  }
}

// One Idempotency-Key for what is asked, until it is answered: whoever asks for the same again after an answer was lost is told what came
// of it, and nothing is done twice. What differs in anything has a key of its own.
const keys = new Map();

async function keyed(asked, send) {
  if (!keys.has(asked)) keys.set(asked, hexadecimal(crypto.getRandomValues(new Uint8Array(KEY_BYTES))));
  let error = null;
  try {
    return await send({ [KEY_HEADER]: keys.get(asked) });
  } catch (failed) {
    error = failed;
    throw failed;
  } finally {
    const running = error?.param === KEY_HEADER && error.retryAfter;
    const unknown = error && (!error.status || error.status >= SERVER_ERROR || running);
    if (!unknown) keys.delete(asked);
  }
}

const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

// Paths are those of the API, such as "/v1/memories"; queries are objects, in which null, undefined and "" are left out.
export class Api {
  #session;
  constructor(session) {
    this.#session = session;
  }

  get = (path, query, options) => this.call("GET", path, { query, ...options });
  post = (path, body, options) => this.call("POST", path, { body, ...options });
  put = (path, body, options) => this.call("PUT", path, { body, ...options });
  patch = (path, body, options) => this.call("PATCH", path, { body, ...options });
  delete = (path, query, options) => this.call("DELETE", path, { query, ...options });

  // The address of something to download or open: <a href=... download>.
  href(path, query) {
    const given = Object.entries(query ?? {}).filter(([, value]) => value != null && value !== "");
    const search = new URLSearchParams(
      given.flatMap(([name, value]) => (Array.isArray(value) ? value.map((one) => [name, one]) : [[name, value]])),
    );
    return `/dashboard/api${path}${given.length ? "?" + search : ""}`;
  }

  // -> the body: JSON as an object, other text as a string, null for none. Raises ApiError.
  // options: query, body, text (a body that is JSON already), headers, signal, seconds (that an answer may take),
  // whole (-> {status, headers, body, text} instead)
  async call(method, path, { query, body, text: json, headers = {}, signal, seconds, whole = false } = {}) {
    const url = this.href(path, query);
    const given = json ?? (body === undefined ? undefined : JSON.stringify(body));
    const kept = given === undefined ? headers : { ...headers, "Content-Type": "application/json" };
    const send = (further) => this.#once(method, path, { url, headers: { ...kept, ...further }, signal, seconds, body: given });
    const answer = method === "GET" ? await send() : await keyed(JSON.stringify([method, url, headers, given]), send);
    return whole ? answer : answer.body;
  }

  async #once(method, path, { url, headers, ...options }) {
    const { csrf } = this.#session;
    const answer = await reach(url, { method, headers: { ...headers, "X-Mneme-CSRF": csrf ?? "" }, ...options });
    this.#session.note(method, path, answer, Number(answer.headers.get("X-Process-Time")));
    if (!answer.ok) {
      const error = refusal(answer);
      if (await this.#session.mended(error, csrf)) return this.#once(method, path, { url, headers, ...options });
      throw error;
    }
    const { status, headers: told, text } = answer;
    const body = !text ? null : (told.get("Content-Type") ?? "").includes("json") ? JSON.parse(text) : text;
    return { status, headers: told, body, text };
  }

  // Send a form with files; onprogress gets the share that has been sent, 0 to 1. -> {status, body}. Raises ApiError.
  upload(path, form, options = {}) {
    const named = [...form].map(([name, value]) => [name, value instanceof File ? [value.name, value.size, value.lastModified] : value]);
    return keyed(JSON.stringify([path, named]), (key) => this.#uploaded(path, form, { ...options, key }));
  }

  async #uploaded(path, form, options) {
    const { csrf } = this.#session;
    try {
      return await this.#transferred(path, form, options);
    } catch (error) {
      if (!(error instanceof ApiError) || !(await this.#session.mended(error, csrf))) throw error;
      return this.#uploaded(path, form, options);
    }
  }

  #transferred(path, form, { onprogress, signal, key }) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", this.href(path));
      request.timeout = 1_000 * UPLOAD_SECONDS_MAX;
      for (const [name, value] of Object.entries({ ...key, "X-Mneme-CSRF": this.#session.csrf ?? "" })) request.setRequestHeader(name, value);
      request.upload.onprogress = (event) => event.lengthComputable && onprogress?.(event.loaded / event.total);
      request.onload = () => {
        const body = parsed(request.responseText);
        if (request.status < 400) resolve({ status: request.status, body });
        else reject(new ApiError(request.status, said(body), request.getResponseHeader("Retry-After")));
      };
      request.onerror = () => reject(new ApiError(0));
      request.ontimeout = () => reject(late(UPLOAD_SECONDS_MAX));
      request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
      signal?.addEventListener("abort", () => request.abort());
      request.send(form);
    });
  }
}

// Whether a call needs a login that is not so long ago (auth.fresh_login_seconds).
const isStale = ({ details }) => details.some(({ type }) => type === "login_too_old");

// A request of the API's that asks for no credential, such as one that a ticket opens. -> the body. Raises ApiError.
export async function post(path, body, { signal } = {}) {
  const given = JSON.stringify(body);
  return keyed(JSON.stringify([path, given]), async (key) => {
    const headers = { ...key, "Content-Type": "application/json" };
    const answer = await reach(path, { method: "POST", headers, signal, body: given });
    if (!answer.ok) throw refusal(answer);
    return JSON.parse(answer.text);
  });
}

// The operator's own requests. The token is in this object and nowhere else: it goes with the view.
export class Operator {
  #token;
  constructor(token) {
    this.#token = token;
  }

  async get(path, { signal } = {}) {
    const answer = await reach(path, { headers: { Authorization: `Bearer ${this.#token}` }, signal });
    if (!answer.ok) throw refusal(answer);
    return JSON.parse(answer.text);
  }
}

// -> {ok, status, headers, text}, once all of it is here. Raises ApiError, AbortError.
async function reach(url, { signal, seconds = ANSWER_SECONDS_MAX, ...options }) {
  const limit = AbortSignal.timeout(1_000 * seconds);
  const either = signal ? AbortSignal.any([signal, limit]) : limit;
  try {
    const answer = await fetch(url, { ...options, signal: either, credentials: "same-origin", cache: "no-store" });
    const { ok, status, headers } = answer;
    return { ok, status, headers, text: await answer.text() };
  } catch (failed) {
    if (failed.name === "TimeoutError") throw late(seconds);
    if (failed.name === "AbortError") throw failed;
    throw new ApiError(0);
  }
}

const late = (seconds) =>
  new ApiError(0, { message: `The service has not answered for ${seconds} seconds. Ask again: what was asked before is not done twice.` });

const refusal = ({ status, headers, text }) => new ApiError(status, said(parsed(text)), headers.get("Retry-After"));

// The error of a body; what a tier lacks has its fields at the top, and its code in `error`.
function said(body) {
  return typeof body?.error === "string" ? { ...body, code: body.error } : body?.error;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
