// The public API as the account that is signed in, and the session itself.

const TIMINGS_MAX = 200;

export class ApiError extends Error {
  // status 0: the service was not reached.
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
  chat = false; // whether the service has a language model to chat with
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
    await this.#own("DELETE");
    this.end();
  }

  // Forget who was signed in, and say so; the page shows the sign-in form.
  end(reason = null) {
    this.#take({ account: null, csrf: null });
    this.dispatchEvent(new CustomEvent("ended", { detail: { reason } }));
  }

  #take({ account, csrf, chat = false }) {
    this.account = account;
    this.csrf = csrf;
    this.chat = chat;
  }

  async #own(method, body) {
    const headers = this.csrf ? { "X-Mneme-CSRF": this.csrf } : {};
    if (body) headers["Content-Type"] = "application/json";
    const answer = await reach("/dashboard/session", { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw await refusal(answer);
    return answer.status === 204 ? { account: null, csrf: null } : answer.json();
  }

  note(method, path, answer, seconds) {
    this.timings.push({ at: Date.now(), method, path, status: answer.status, seconds });
    if (this.timings.length > TIMINGS_MAX) this.timings.shift();
  }
}

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
  // options: query, body, text (a body that is JSON already), headers, signal, whole (-> {status, headers, body, text} instead)
  async call(method, path, { query, body, text: json, headers = {}, signal, whole = false } = {}) {
    const given = json ?? (body === undefined ? undefined : JSON.stringify(body));
    const sent = { ...headers };
    if (method !== "GET") sent["X-Mneme-CSRF"] = this.#session.csrf ?? "";
    if (given !== undefined) sent["Content-Type"] = "application/json";
    const answer = await reach(this.href(path, query), { method, headers: sent, signal, body: given });
    this.#session.note(method, path, answer, Number(answer.headers.get("X-Process-Time")));
    if (!answer.ok) throw this.#judged(await refusal(answer));
    const text = await answer.text();
    const parsed = !text ? null : (answer.headers.get("Content-Type") ?? "").includes("json") ? JSON.parse(text) : text;
    return whole ? { status: answer.status, headers: answer.headers, body: parsed, text } : parsed;
  }

  // Send a form with files; onprogress gets the share that has been sent, 0 to 1. -> {status, body}. Raises ApiError.
  upload(path, form, { onprogress, signal } = {}) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", this.href(path));
      request.setRequestHeader("X-Mneme-CSRF", this.#session.csrf ?? "");
      request.upload.onprogress = (event) => event.lengthComputable && onprogress?.(event.loaded / event.total);
      request.onload = () => {
        const body = parsed(request.responseText);
        if (request.status < 400) resolve({ status: request.status, body });
        else reject(this.#judged(new ApiError(request.status, said(body), request.getResponseHeader("Retry-After"))));
      };
      request.onerror = () => reject(new ApiError(0));
      request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
      signal?.addEventListener("abort", () => request.abort());
      request.send(form);
    });
  }

  // A 401 here is a session that is over: whoever waits for the answer still gets the error.
  #judged(error) {
    if (error.status === 401) this.#session.end("Your session is over. Sign in again to go on.");
    return error;
  }
}

// A request of the API's that asks for no credential, such as one that a ticket opens. -> the body. Raises ApiError.
export async function post(path, body, { signal } = {}) {
  const headers = { "Content-Type": "application/json" };
  const answer = await reach(path, { method: "POST", headers, signal, body: JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

// The operator's own requests. The token is in this object and nowhere else: it goes with the view.
export class Operator {
  #token;
  constructor(token) {
    this.#token = token;
  }

  async get(path, { signal } = {}) {
    const answer = await reach(path, { headers: { Authorization: `Bearer ${this.#token}` }, signal });
    if (!answer.ok) throw await refusal(answer);
    return answer.json();
  }
}

async function reach(url, options) {
  try {
    return await fetch(url, { ...options, credentials: "same-origin", cache: "no-store" });
  } catch (failed) {
    if (failed.name === "AbortError") throw failed;
    throw new ApiError(0);
  }
}

async function refusal(answer) {
  return new ApiError(answer.status, said(parsed(await answer.text())), answer.headers.get("Retry-After"));
}

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
