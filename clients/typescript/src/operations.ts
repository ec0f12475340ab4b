// Written by generate.mjs from the OpenAPI document; change that, not this.
// SHA-256 of the document: 9bbd330e3652d9803765af493c200d48ecc78962b94c7f25be532a921dbe2317
import { Listing } from "./listing.js";
import type { CompletionChunk, Query, Schemas } from "./shapes.js";
import { Stream, readEvents, readLines } from "./streams.js";
import type { CallOptions, Keyed, Matching, Preferring, Transport } from "./transport.js";
import { formOf, type FileContent, type UploadFields } from "./uploads.js";

/**
 * Operations named `account.…`.
 */
export class Account {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Erase the account and everything it holds
   *
   * Needs `confirm=erase-account`, else 400. Every credential of the account is refused from now
   * on, this one included; the e-mail address is free again. All stores are swept and the key
   * that seals the account's rows is destroyed. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly erase = (
    query: Query<"account.erase">,
    options: Keyed = {},
  ): Promise<Schemas["Erased"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/account",
      query,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Read the receipts of an erased account
   *
   * With the text that its DELETE answered; no other credential is left.
   */
  readonly erasure = (
    body: Schemas["ReceiptText"],
    options: CallOptions = {},
  ): Promise<Schemas["Erasure"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/account/receipts",
      body,
      as: "json",
      once: true,
      options,
    });

  /**
   * Export everything the account holds
   *
   * One JSON object a line, streamed. The last line is the manifest, with the count and SHA-256
   * of each kind's lines and this installation's signatures, of all and of each block of lines;
   * without it the export is not whole. Secrets (password, keys) are not in it. Needs the scope
   * `admin`.
   */
  readonly export = (
    options: CallOptions = {},
  ): Stream<Schemas["Record"]> =>
    new Stream(this.#transport, {
      method: "GET",
      path: "/v1/account/export",
      as: "stream",
      accept: "application/x-ndjson",
      options,
    }, readLines<Schemas["Record"]>);

  /**
   * Export in parts
   *
   * The same records, for a client that wants to go on where it was interrupted. Needs the scope
   * `admin`.
   */
  readonly exportPart = (
    query: Query<"account.export_part"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["Part"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/account/export/parts",
      query,
      as: "json",
      options,
    });

  /**
   * Import an export
   *
   * The lines themselves as application/x-ndjson, or as `records`. Contents, versions, times and
   * order stay; ids get this account's tag. A manifest is checked first. Unless this installation
   * has signed it for this account, the actors of all versions are marked with `imported:`, since
   * nobody knows whether the history is so. It can be repeated: what is here already is left
   * alone. A memory that was not here costs a credit. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly import = (
    body: Schemas["Import"],
    options: Keyed = {},
  ): Promise<Schemas["Imported"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/account/import",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Import a part, in one transaction
   *
   * A memory that was not here costs a credit. Cut into blocks of `block_records` lines, each
   * sent with its signature of the manifest's `blocks`, an export is verified as in one piece.
   * Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly importPart = (
    body: Schemas["ImportPart"],
    options: Keyed = {},
  ): Promise<Schemas["Imported"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/account/import/parts",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List the cleanups after deletions, with a receipt for each store
   *
   * Those of the last week. Needs the scope `read`.
   */
  readonly receipts = (
    query: Query<"account.receipts"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["CleanupReceipt"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/account/receipts",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `auth.api_keys.…`.
 */
export class AuthApiKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Mint an API key
   *
   * The key's text is in this answer only. Its scopes are read and write unless others are named.
   * Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly create = (
    body: Schemas["NewApiKey"],
    options: Keyed = {},
  ): Promise<Schemas["MintedApiKey"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/api-keys",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete an API key
   *
   * The key is refused from the next request on. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed = {},
  ): Promise<void> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/auth/api-keys/{id}",
      in: { id: id },
      as: "text",
      keyed: true,
      options,
    });

  /**
   * List the API keys
   *
   * Newest first, with what each was used for up to this request. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"auth.api_keys.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["ListedApiKey"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/auth/api-keys",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `auth.invitation.…`.
 */
export class AuthInvitation {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Ask for an invitation to register
   *
   * The address is sent what a registration takes as its `invitation` for a day, and needs where
   * `auth.registration` is `mailed`; or, if it has an account, a ticket that sets a new password;
   * at most five mails an hour. The answer is always the same. 403 where `auth.registration` is
   * `invite` or `closed`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly request = (
    body: Schemas["InvitationRequest"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["InvitationAsked"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/invitation-request",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `auth.password_reset.…`.
 */
export class AuthPasswordReset {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Set a new password with a ticket
   *
   * Ends every session and proves the e-mail address. API keys keep working, unless it is the
   * first proof: until then they may be anybody's, and are deleted. A ticket that was used, has
   * expired, or is older than the password is 403. A repeated Idempotency-Key repeats the answer
   * for 24 hours.
   */
  readonly confirm = (
    body: Schemas["Reset"],
    options: Keyed = {},
  ): Promise<Schemas["SessionsEnded"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/password-reset/confirm",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Ask for a new password
   *
   * If the address has an account, it is sent a ticket that sets a new password once, within an
   * hour; at most five an hour. The answer is always the same. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly request = (
    body: Schemas["ResetRequest"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["ResetAsked"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/password-reset",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `auth.sessions.…`.
 */
export class AuthSessions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * End a session
   *
   * Its access token is refused from the next request on. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed = {},
  ): Promise<void> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/auth/sessions/{id}",
      in: { id: id },
      as: "text",
      keyed: true,
      options,
    });

  /**
   * End all other sessions
   *
   * Every access token but the one that asks is refused from the next request on; asked with an
   * API key, every one. API keys keep working. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly deleteOthers = (
    options: Keyed = {},
  ): Promise<Schemas["SessionsEnded"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/auth/sessions",
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List the sessions
   *
   * Those that registration and login began and that have not ended, the newest first. A token of
   * a release before sessions were listed is not among them. Needs the scope `admin`.
   */
  readonly list = (
    query: Query<"auth.sessions.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["ListedSession"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/auth/sessions",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `auth.totp.…`.
 */
export class AuthTotp {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Turn the second factor on
   *
   * From now on a login needs a `code`, or a recovery code; API keys and sessions go on. A wrong
   * code is 403. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24
   * hours.
   */
  readonly confirm = (
    body: Schemas["CodeGiven"],
    options: Keyed = {},
  ): Promise<Schemas["Confirmed"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/totp/confirm",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Ask for the secret of a second factor
   *
   * For an authenticator app (TOTP, SHA-1, 6 digits, 30 seconds). It counts once a code of it is
   * confirmed; until then another call replaces it. 409 where there is one that counts. Needs the
   * scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly create = (
    options: Keyed = {},
  ): Promise<Schemas["Secret"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/totp",
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Turn the second factor off
   *
   * With a code of the app or a recovery code. A wrong one is 403. Needs the scope `admin`. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    body: Schemas["CodeGiven"],
    options: Keyed = {},
  ): Promise<void> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/auth/totp",
      body,
      as: "text",
      keyed: true,
      options,
    });
}

/**
 * Operations named `auth.verification.…`.
 */
export class AuthVerification {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Ask for a mail that confirms an address
   *
   * If the address has an account and is not confirmed, it is sent another ticket for POST
   * /v1/auth/verify-email, good for a day; at most five an hour. The answer is always the same. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly request = (
    body: Schemas["VerificationRequest"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["VerificationAsked"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/verify-email/request",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `auth.…`.
 */
export class Auth {
  readonly #transport: Transport;
  readonly apiKeys: AuthApiKeys;
  readonly invitation: AuthInvitation;
  readonly passwordReset: AuthPasswordReset;
  readonly sessions: AuthSessions;
  readonly totp: AuthTotp;
  readonly verification: AuthVerification;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.apiKeys = new AuthApiKeys(transport);
    this.invitation = new AuthInvitation(transport);
    this.passwordReset = new AuthPasswordReset(transport);
    this.sessions = new AuthSessions(transport);
    this.totp = new AuthTotp(transport);
    this.verification = new AuthVerification(transport);
  }

  /**
   * Log in
   *
   * Trades the e-mail address and password for a new access token, and begins a session with it.
   * A wrong one of either is 401, and after ten of them from one network (IPv6: /64) it is 429
   * for a while, which doubles up to a minute. Where the account has a second factor it is 401
   * with `totp_required` as the `type` in `details`, until a `code` comes along. A repeated
   * request begins another session.
   */
  readonly login = (
    body: Schemas["Login"],
    options: CallOptions = {},
  ): Promise<Schemas["Session"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/login",
      body,
      as: "json",
      once: true,
      options,
    });

  /**
   * Log out
   *
   * Revokes the access token of this request. Other tokens and API keys keep working; an API key
   * cannot log out (400). Needs the scope `write`. A repeated Idempotency-Key repeats the answer
   * for 24 hours.
   */
  readonly logout = (
    options: Keyed = {},
  ): Promise<void> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/logout",
      as: "text",
      keyed: true,
      options,
    });

  /**
   * Get the account of the credential
   *
   * Get the account of the credential. Needs the scope `read`.
   */
  readonly me = (
    options: CallOptions = {},
  ): Promise<Schemas["Account"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/auth/me",
      as: "json",
      options,
    });

  /**
   * Change the password
   *
   * Ends every session but the one that asks. API keys keep working; delete those that somebody
   * else may have. A wrong current password is 403, and counts as a failed login. Needs the scope
   * `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly password = (
    body: Schemas["NewPassword"],
    options: Keyed = {},
  ): Promise<Schemas["SessionsEnded"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/password",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Register an account
   *
   * Makes an account and logs it in. The access token is usable at once. A taken e-mail address
   * is 409. Where `auth.registration` is `invite`, it needs an `invitation` of the operator,
   * where it is `mailed` one of POST /v1/auth/invitation-request, and where it is `closed`,
   * nobody registers: 403. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly register = (
    body: Schemas["Registration"],
    options: Keyed = {},
  ): Promise<Schemas["Session"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/register",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Confirm an e-mail address with a ticket
   *
   * With the ticket that a registration mails where `auth.verify_email` is on, or POST
   * /v1/auth/verify-email/request. It works once; another proof is a new password (POST
   * /v1/auth/password-reset). A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly verifyEmail = (
    body: Schemas["VerifyEmail"],
    options: Keyed = {},
  ): Promise<Schemas["Verified"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/auth/verify-email",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `billing.invoices.…`.
 */
export class BillingInvoices {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Get an invoice
   *
   * Get an invoice. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Invoice"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/billing/invoices/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List invoices and credit notes
   *
   * List invoices and credit notes. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"billing.invoices.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Invoice"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/billing/invoices",
      query,
      as: "json",
      options,
    });

  /**
   * Get an invoice as a page to print
   *
   * Get an invoice as a page to print. Needs the scope `read`.
   */
  readonly page = (
    id: string,
    options: CallOptions = {},
  ): Promise<string> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/billing/invoices/{id}/html",
      in: { id: id },
      as: "text",
      accept: "*/*",
      options,
    });
}

/**
 * Operations named `billing.…`.
 */
export class Billing {
  readonly #transport: Transport;
  readonly invoices: BillingInvoices;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.invoices = new BillingInvoices(transport);
  }

  /**
   * Downgrade the plan
   *
   * When the month ends; until then nothing changes. The present tier cancels a downgrade that is
   * pending. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly downgrade = (
    body: Schemas["Change"],
    options: Keyed = {},
  ): Promise<Schemas["Subscription"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/billing/downgrade",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get the subscription
   *
   * Get the subscription. Needs the scope `read`.
   */
  readonly subscription = (
    options: CallOptions = {},
  ): Promise<Schemas["Subscription"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/billing/subscription",
      as: "json",
      options,
    });

  /**
   * List the tiers
   *
   * All of them, the lowest first, on one page.
   */
  readonly tiers = (
    options: CallOptions = {},
  ): Listing<Schemas["Tier"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/billing/tiers",
      as: "json",
      options,
    });

  /**
   * Upgrade the plan
   *
   * At once, or, where a payment provider collects, as soon as the invoice is paid. It charges
   * the difference for the days left, today included. The upgrade cancels a pending downgrade;
   * one that is not paid within the month is forgone. Needs the scope `admin`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly upgrade = (
    body: Schemas["Change"],
    options: Keyed = {},
  ): Promise<Schemas["Upgraded"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/billing/upgrade",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `chat.…`.
 */
export class Chat {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Chat completion with memory
   *
   * OpenAI's request and response. What memory knows about the user's last message is put in
   * front of the conversation, fenced and marked as untrusted data. With `stream: true` the
   * answer is a stream of server-sent events, whose last chunk before usage has `memory`. Without
   * a configured language model: 503. Needs the scope `read`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly completions = (
    body: Schemas["ChatBody"] & { stream?: never },
    options: Keyed = {},
  ): Promise<Schemas["ChatReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/chat/completions",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Chat completion with memory, piece by piece as it is made
   *
   * OpenAI's request and response. What memory knows about the user's last message is put in
   * front of the conversation, fenced and marked as untrusted data. With `stream: true` the
   * answer is a stream of server-sent events, whose last chunk before usage has `memory`. Without
   * a configured language model: 503. Needs the scope `read`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly streamCompletions = (
    body: Schemas["ChatBody"] & { stream?: never },
    options: Keyed = {},
  ): Stream<CompletionChunk> =>
    new Stream(this.#transport, {
      method: "POST",
      path: "/v1/chat/completions",
      body: { ...body, stream: true },
      as: "stream",
      accept: "text/event-stream",
      keyed: true,
      options,
    }, readEvents<CompletionChunk>);

  /**
   * List the models of chats
   *
   * As OpenAI's clients ask for them: `mneme`, the configured one and what `chat.models_allowed`
   * names. None without a configured language model. Needs the scope `read`.
   */
  readonly models = (
    options: CallOptions = {},
  ): Promise<Schemas["AvailableModels"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/models",
      as: "json",
      options,
    });
}

/**
 * Operations named `collections.…`.
 */
export class Collections {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Delete collections by their ids
   *
   * One transaction, with a result for each id. The default collection is `forbidden`. Needs the
   * scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly bulkDelete = (
    body: Schemas["plugins__collections__BulkDelete"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__collections__BulkDeleted"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/collections/bulk-delete",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Create a collection
   *
   * Create a collection. Needs the scope `write`. A repeated Idempotency-Key repeats the answer
   * for 24 hours.
   */
  readonly create = (
    body: Schemas["NewCollection"],
    options: Keyed = {},
  ): Promise<Schemas["Collection"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/collections",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete a collection and everything in it
   *
   * Nothing in it can be read from now on; what was derived from it is swept in the background.
   * Again is 404. With If-Match, another version than the named one is 412. Needs the scope
   * `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed & Matching = {},
  ): Promise<Schemas["DeletedCollection"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/collections/{id}",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete all collections and everything in them
   *
   * Needs `confirm=delete-all-collections`, else 400. The default collection stays, emptied.
   * Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly deleteAll = (
    query: Query<"collections.delete_all">,
    options: Keyed = {},
  ): Promise<Schemas["plugins__collections__AllDeleted"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/collections/all",
      query,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get a collection
   *
   * The ETag is its version. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Collection"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/collections/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * Get the default collection
   *
   * Every account has one; memories without a collection_id go there. Needs the scope `read`.
   */
  readonly getDefault = (
    options: CallOptions = {},
  ): Promise<Schemas["Collection"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/collections/default",
      as: "json",
      options,
    });

  /**
   * List collections
   *
   * Newest first, the default collection included. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"collections.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Collection"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/collections",
      query,
      as: "json",
      options,
    });

  /**
   * Change a collection
   *
   * Fields that are absent stay; null clears description and metadata; metadata is replaced
   * whole. With If-Match, another version than the named one is 412. Needs the scope `write`. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly update = (
    id: string,
    body: Schemas["CollectionPatch"] = {},
    options: Keyed & Matching = {},
  ): Promise<Schemas["Collection"]> =>
    this.#transport.send({
      method: "PATCH",
      path: "/v1/collections/{id}",
      in: { id: id },
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `confidence.…`.
 */
export class Confidence {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Whether to act or to ask
   *
   * From how similar decisions went and what people have corrected. Advice only. Needs the scope
   * `read`.
   */
  readonly get = (
    query: Query<"confidence.get">,
    options: CallOptions = {},
  ): Promise<Schemas["Confidence"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/confidence",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `corrections.…`.
 */
export class Corrections {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Put something right
   *
   * Stores the corrected content as a memory; the memory it corrects is superseded in the same
   * transaction. Needs the scope `write`. A repeated Idempotency-Key answers with the same
   * resource for as long as it exists.
   */
  readonly create = (
    body: Schemas["NewCorrection"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Correction"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/corrections",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete a correction and its memory
   *
   * What it had superseded is found again. Again is 404. Needs the scope `write`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed = {},
  ): Promise<Schemas["DeletedCorrection"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/corrections/{id}",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get a correction
   *
   * Get a correction. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Correction"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/corrections/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List corrections
   *
   * List corrections. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"corrections.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Correction"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/corrections",
      query,
      as: "json",
      options,
    });

  /**
   * Corrections that matter for a task
   *
   * Corrections that matter for a task. Needs the scope `read`.
   */
  readonly relevant = (
    query: Query<"corrections.relevant">,
    options: CallOptions = {},
  ): Promise<Schemas["RelevantCorrections"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/corrections/relevant",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `decisions.…`.
 */
export class Decisions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Get a logged decision
   *
   * Get a logged decision. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["LoggedDecision"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/decisions/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List logged decisions
   *
   * List logged decisions. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"decisions.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["LoggedDecision"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/decisions",
      query,
      as: "json",
      options,
    });

  /**
   * Log a decision and its outcome
   *
   * Log a decision and its outcome. Needs the scope `write`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly log = (
    body: Schemas["NewLogged"],
    options: Keyed = {},
  ): Promise<Schemas["LoggedDecision"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/decisions",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Past decisions like the one at hand
   *
   * Past decisions like the one at hand. Needs the scope `read`.
   */
  readonly similar = (
    query: Query<"decisions.similar">,
    options: CallOptions = {},
  ): Promise<Schemas["SimilarDecisions"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/decisions/similar",
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `documents.…`.
 */
export class Documents {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * List the chunks of a document
   *
   * In the order of the text. Needs the scope `read`.
   */
  readonly chunks = (
    id: string,
    query: Query<"documents.chunks"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Chunk"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/documents/{id}/chunks",
      in: { id: id },
      query,
      as: "json",
      options,
    });

  /**
   * Get the file of a document
   *
   * Byte for byte as it was uploaded. 404 once it was removed, as that of a document that failed
   * is (`file_removed_at`). Needs the scope `read`.
   */
  readonly content = (
    id: string,
    options: CallOptions = {},
  ): Promise<ArrayBuffer> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/documents/{id}/content",
      in: { id: id },
      as: "arrayBuffer",
      accept: "*/*",
      options,
    });

  /**
   * Delete a document and the memories of its chunks
   *
   * Neither can be read or found from now on; files and derived data are swept in the background.
   * Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24
   * hours.
   */
  readonly delete = (
    id: string,
    options: Keyed = {},
  ): Promise<Schemas["DeletedDocument"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/documents/{id}",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get a document
   *
   * Get a document. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Document"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/documents/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List documents
   *
   * List documents. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"documents.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Document"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/documents",
      query,
      as: "json",
      options,
    });

  /**
   * Get the extracted text of a document
   *
   * The text that the offsets of chunks refer to, in UTF-8. Needs the scope `read`.
   */
  readonly text = (
    id: string,
    options: CallOptions = {},
  ): Promise<string> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/documents/{id}/text",
      in: { id: id },
      as: "text",
      accept: "*/*",
      options,
    });

  /**
   * Upload a document
   *
   * PDF, DOCX, PPTX, XLSX, TXT, MD, HTML, CSV, JSON, EML, SRT, VTT, MP3, WAV, M4A, FLAC, OGG,
   * MP4, WebM, MOV, PNG, JPEG, WebP, by content. 202: it is stored and will be read, or once more
   * where it had failed or memories of its chunks were deleted. 200: the collection has it
   * already. Of a document that is there, title, tags and metadata stay unless they are sent.
   * Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly upload = (
    file: FileContent,
    fields: UploadFields = {},
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Uploaded"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/documents/upload",
      body: formOf(file, fields),
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `feedback.…`.
 */
export class Feedback {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Say what should have been found
   *
   * Say what should have been found. Needs the scope `write`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly missing = (
    body: Schemas["Missing"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__feedback__Received"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/feedback/missing",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Say where a memory should have stood
   *
   * Say where a memory should have stood. Needs the scope `write`. A repeated Idempotency-Key
   * repeats the answer for 24 hours.
   */
  readonly ranking = (
    body: Schemas["Ranking"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__feedback__Received"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/feedback/ranking",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Say whether a memory answers a query
   *
   * Say whether a memory answers a query. Needs the scope `write`. A repeated Idempotency-Key
   * repeats the answer for 24 hours.
   */
  readonly relevance = (
    body: Schemas["Relevance"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__feedback__Received"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/feedback/relevance",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * What the feedback adds up to
   *
   * What the feedback adds up to. Needs the scope `read`.
   */
  readonly stats = (
    options: CallOptions = {},
  ): Promise<Schemas["Stats"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/feedback/stats",
      as: "json",
      options,
    });
}

/**
 * Operations named `graph.entities.…`.
 */
export class GraphEntities {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Create an entity, or add to one
   *
   * The same name and type again is 200: aliases and attributes are merged. Needs the scope
   * `write`. Part of the feature `graph_write`, which not every tier has. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly create = (
    body: Schemas["NewEntity"],
    options: Keyed = {},
  ): Promise<Schemas["CreatedEntity"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/knowledge-graph/entities",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete an entity with its relationships
   *
   * Again is 404. A name that several entities go by is 409, with their ids. The memories that
   * mention it stay. Needs the scope `write`. Part of the feature `graph_write`, which not every
   * tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    entityName: string,
    options: Keyed = {},
  ): Promise<Schemas["DeletedOfGraph"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/knowledge-graph/entities/{entity_name}",
      in: { entity_name: entityName },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get an entity with its relationships and sources
   *
   * By id, name or alias; names are compared without case. Needs the scope `read`.
   */
  readonly get = (
    entityName: string,
    options: CallOptions = {},
  ): Promise<Schemas["EntityDetails"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/knowledge-graph/entities/{entity_name}",
      in: { entity_name: entityName },
      as: "json",
      options,
    });

  /**
   * List entities
   *
   * Newest first. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"graph.entities.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Entity"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/knowledge-graph/entities",
      query,
      as: "json",
      options,
    });

  /**
   * Merge an entity into another one
   *
   * Two entries for the same thing become the one named `into`: it gets the names, the attributes
   * where it has none of its own, the relationships with their ids and times, and the mentions;
   * then the other one is gone, and its name means this one. A large entity is merged in several
   * calls: again until `complete`. A name that several entities go by is 409, with their ids.
   * Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly merge = (
    entityName: string,
    body: Schemas["EntityMerge"],
    options: Keyed = {},
  ): Promise<Schemas["MergedEntity"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/knowledge-graph/entities/{entity_name}/merge",
      in: { entity_name: entityName },
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `graph.relationships.…`.
 */
export class GraphRelationships {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Create a relationship between two entities
   *
   * Names that do not exist are created. The same ends, type and valid_from again is 200,
   * attributes merged. Needs the scope `write`. Part of the feature `graph_write`, which not
   * every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly create = (
    body: Schemas["NewRelationship"],
    options: Keyed = {},
  ): Promise<Schemas["CreatedRelationship"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/knowledge-graph/relationships",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete a relationship
   *
   * Named in the body or in the query; on both clocks. Again is 404. Needs the scope `write`.
   * Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key
   * repeats the answer for 24 hours.
   */
  readonly delete = (
    query: Query<"graph.relationships.delete"> = {},
    options: Keyed = {},
  ): Promise<Schemas["DeletedOfGraph"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/knowledge-graph/relationships",
      query,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `graph.…`.
 */
export class Graph {
  readonly #transport: Transport;
  readonly entities: GraphEntities;
  readonly relationships: GraphRelationships;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.entities = new GraphEntities(transport);
    this.relationships = new GraphRelationships(transport);
  }

  /**
   * List claims that contradict each other
   *
   * Functional claims of one subject whose intervals overlap with different targets, with both
   * sides' evidence. Needs the scope `read`. Part of the feature `graph_query`, which not every
   * tier has.
   */
  readonly contradictions = (
    query: Query<"graph.contradictions"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Contradiction"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/knowledge-graph/contradictions",
      query,
      as: "json",
      options,
    });

  /**
   * Ask what held at a time, as it was known at a time
   *
   * More than two hops need the feature `graph_query`. Needs the scope `read`.
   */
  readonly query = (
    body: Schemas["GraphQuery"] = {},
    options: CallOptions = {},
  ): Promise<Schemas["GraphAnswer"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/knowledge-graph/query",
      body,
      as: "json",
      options,
    });

  /**
   * Figures about the graph
   *
   * Kept up with every change, never counted on demand. Needs the scope `read`.
   */
  readonly stats = (
    options: CallOptions = {},
  ): Promise<Schemas["GraphStats"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/knowledge-graph/stats",
      as: "json",
      options,
    });

  /**
   * List an entity's relationships in time
   *
   * Ascending by valid_from, those that always held first. Needs the scope `read`.
   */
  readonly timeline = (
    entityName: string,
    query: Query<"graph.timeline"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Relationship"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/knowledge-graph/timeline/{entity_name}",
      in: { entity_name: entityName },
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `learning.…`.
 */
export class Learning {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Choose an action, or record one, with its propensity
   *
   * The choice is drawn from the distribution in the receipt, so its probability is exact. Needs
   * the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as
   * it exists.
   */
  readonly decide = (
    body: Schemas["NewDecision"],
    options: Keyed = {},
  ): Promise<Schemas["Decided"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/learning/decisions",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Whether the evidence for a policy suffices
   *
   * The bounds are an anytime-valid confidence sequence: they hold however often you ask and
   * whenever you stop. Needs the scope `read`.
   */
  readonly evaluate = (
    key: string,
    body: Schemas["Evaluate"] = {},
    options: CallOptions = {},
  ): Promise<Schemas["Evaluation"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/learning/policies/{key}/evaluate",
      in: { key: key },
      body,
      as: "json",
      options,
    });

  /**
   * Get a decision and its outcomes
   *
   * Get a decision and its outcomes. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["DecisionEvidence"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/learning/decisions/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * What a policy's decisions say of its actions
   *
   * Posteriors and point estimates; they describe, and decide nothing. Needs the scope `read`.
   */
  readonly insights = (
    key: string,
    query: Query<"learning.insights"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["Insights"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/learning/policies/{key}/insights",
      in: { key: key },
      query,
      as: "json",
      options,
    });

  /**
   * List the policies decisions were made under
   *
   * Newest first. A policy begins with its first decision. Needs the scope `read`.
   */
  readonly policies = (
    query: Query<"learning.policies"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Policy"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/learning/policies",
      query,
      as: "json",
      options,
    });

  /**
   * Report a delayed, final or corrected outcome
   *
   * Nothing is overwritten: of each metric the latest counts. A decision without outcome is
   * censored, no failure. Needs the scope `write`. A repeated Idempotency-Key answers with the
   * same resource for as long as it exists.
   */
  readonly report = (
    id: string,
    body: Schemas["NewOutcome"] = {},
    options: Keyed = {},
  ): Promise<Schemas["OutcomeRecorded"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/learning/decisions/{id}/outcomes",
      in: { id: id },
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `memories.jobs.…`.
 */
export class MemoriesJobs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Poll an indexing or ingestion job
   *
   * Poll an indexing or ingestion job. Needs the scope `read`.
   */
  readonly get = (
    jobId: string,
    options: CallOptions = {},
  ): Promise<Schemas["MemoryJob"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/memories/jobs/{job_id}",
      in: { job_id: jobId },
      as: "json",
      options,
    });

  /**
   * List indexing and ingestion jobs
   *
   * List indexing and ingestion jobs. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"memories.jobs.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["MemoryJob"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/memories/jobs",
      query,
      as: "json",
      options,
    });

  /**
   * Take back what an ingestion job stored
   *
   * Deletes the memories it created, but for those whose text was edited since; what the deleted
   * ones had superseded holds again. Needs the scope `write`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly undo = (
    jobId: string,
    options: Keyed = {},
  ): Promise<Schemas["Undone"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/jobs/{job_id}/undo",
      in: { job_id: jobId },
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `memories.…`.
 */
export class Memories {
  readonly #transport: Transport;
  readonly jobs: MemoriesJobs;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.jobs = new MemoriesJobs(transport);
  }

  /**
   * Report duplicates, stale and unused memories
   *
   * Of the newest memories of the scope. Changes nothing. Needs the scope `read`.
   */
  readonly audit = (
    query: Query<"memories.audit"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["Audit"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/memories/audit",
      query,
      as: "json",
      options,
    });

  /**
   * Delete up to 500 memories by their ids
   *
   * One transaction, with a result for each id. Needs the scope `write`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly bulkDelete = (
    body: Schemas["plugins__memory_views__BulkDelete"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__memory_views__BulkDeleted"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/bulk-delete",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Create a memory, or one for each message of a conversation
   *
   * 201: searches find it. 202: it is stored, and will be found when its job is done. Costs 1
   * credit per memory. With `infer`, what can be learned from it is stored instead (5 credits);
   * `job_id` names the job. Needs the scope `write`. A repeated Idempotency-Key answers with the
   * same resource for as long as it exists.
   */
  readonly create: {
    (body: Schemas["NewMemory"] & { content: string; infer?: false }, options?: Keyed & Preferring): Promise<Schemas["CreatedMemory"]>;
    (body: Schemas["NewMemory"], options?: Keyed & Preferring): Promise<Schemas["Created"]>;
  } = (
    body: Schemas["NewMemory"],
    options: Keyed & Preferring = {},
  ): Promise<never> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Create up to 100 memories
   *
   * All accepted items commit in one transaction, with a result for each. Costs 1 credit per
   * item. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for
   * as long as it exists.
   */
  readonly createBatch = (
    body: Schemas["Batch"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["BatchCreated"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/batch",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Create a memory from a text as it is
   *
   * Create a memory from a text as it is. Needs the scope `write`. A repeated Idempotency-Key
   * answers with the same resource for as long as it exists.
   */
  readonly createRaw = (
    body: Schemas["RawMemory"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/raw",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete a memory
   *
   * With its history and all that was derived from it. Again is 404. With If-Match, another
   * version than the named one is 412. Needs the scope `write`. A repeated Idempotency-Key
   * repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed & Matching = {},
  ): Promise<Schemas["plugins__memory_views__Deleted"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/memories/{id}",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete all memories, or all that pass the filters
   *
   * Needs `confirm=delete-all-memories`, else 400. None can be read from now on; the rest is
   * swept later. Texts that still wait to be processed and pass the filters go, too: their jobs
   * fail. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly deleteAll = (
    query: Query<"memories.delete_all">,
    options: Keyed = {},
  ): Promise<Schemas["plugins__memory_views__AllDeleted"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/memories/all",
      query,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete the memories that pass a filter
   *
   * However many there are, in one transaction: none can be read from now on, and the rest is
   * swept later. Superseded ones are deleted too. Takes conditions of equality and times. Needs
   * the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly deleteMatching = (
    body: Schemas["Doomed"],
    options: Keyed = {},
  ): Promise<Schemas["plugins__memory_views__AllDeleted"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/delete-matching",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get a memory
   *
   * The ETag is its version. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/memories/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List a memory's versions
   *
   * Oldest first, the current one last. Needs the scope `read`.
   */
  readonly history = (
    id: string,
    query: Query<"memories.history"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Version"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/memories/{id}/history",
      in: { id: id },
      query,
      as: "json",
      options,
    });

  /**
   * Create memories by the thousand
   *
   * The memories as application/x-ndjson, one a line, or as `memories`. The answer is
   * application/x-ndjson, too, and comes while they are stored: an outcome for each line, in
   * order, and a summary as the last. They are stored a hundred at a time. An answer without a
   * summary was broken off, and one whose summary has an `error` stopped: with an Idempotency-Key
   * it goes on when the same lines are sent again, and what is stored already is not stored, or
   * charged, again. A body with a line that is no JSON object is refused as a whole. Costs 1
   * credit per memory. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for
   * 24 hours.
   */
  readonly import = (
    body: Schemas["ImportedLines"],
    options: Keyed = {},
  ): Stream<Schemas["LineOutcome"]> =>
    new Stream(this.#transport, {
      method: "POST",
      path: "/v1/memories/import",
      body,
      as: "stream",
      accept: "application/x-ndjson",
      keyed: true,
      options,
    }, readLines<Schemas["LineOutcome"]>);

  /**
   * List memories
   *
   * Newest first, without superseded ones unless asked for. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"memories.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Memory"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/memories",
      query,
      as: "json",
      options,
    });

  /**
   * Let one memory stand for its near duplicates
   *
   * The duplicates are superseded by the one that is kept; restoring one of them undoes it.
   * Ingestion merges by itself. Needs the scope `write`. A repeated Idempotency-Key repeats the
   * answer for 24 hours.
   */
  readonly merge = (
    body: Schemas["Merge"],
    options: Keyed = {},
  ): Promise<Schemas["Merged"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/merge",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List the near duplicates that a memory stands for
   *
   * Merged by ingestion or on request, by id; the history of each says when and why. Needs the
   * scope `read`.
   */
  readonly merged = (
    id: string,
    query: Query<"memories.merged"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Memory"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/memories/{id}/merged",
      in: { id: id },
      query,
      as: "json",
      options,
    });

  /**
   * Extract memories from a text or a conversation
   *
   * Facts are deduplicated and conflicts resolved; what is replaced is superseded, never lost.
   * Answers 202 with the job; with `Prefer: wait=N` 200 with its result, if it is done within N
   * seconds. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource
   * for as long as it exists.
   */
  readonly process = (
    body: Schemas["ProcessBody"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Ingestion"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/process",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List memories that pass a filter
   *
   * Newest first, from any offset on; the filter language of searches. What would read or compare
   * too much is 422 and says what would narrow it. Needs the scope `read`.
   */
  readonly query = (
    body: Schemas["MemoriesQuery"] = {},
    options: CallOptions = {},
  ): Promise<Schemas["MemoriesFound"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/query",
      body,
      as: "json",
      options,
    });

  /**
   * Bring a superseded memory back
   *
   * 409 when it is not superseded. Needs the scope `write`. A repeated Idempotency-Key repeats
   * the answer for 24 hours.
   */
  readonly restore = (
    id: string,
    options: Keyed = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/{id}/restore",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List the users, agents, applications and runs that have memories
   *
   * With how many memories each has. Needs the scope `read`.
   */
  readonly scopes = (
    query: Query<"memories.scopes"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["ScopesFound"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/memories/scopes",
      query,
      as: "json",
      options,
    });

  /**
   * Change a memory
   *
   * Absent fields stay, null clears. New content is indexed again; until then (202) neither old
   * nor new text is found. With If-Match, another version than the named one is 412. Needs the
   * scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly update = (
    id: string,
    body: Schemas["MemoryPatch"] = {},
    options: Keyed & Preferring & Matching = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "PATCH",
      path: "/v1/memories/{id}",
      in: { id: id },
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * List the distinct values of a field
   *
   * With how many memories have each, among those that pass the filter. Tags and metadata are
   * read from the memories; where that would read too much it is 422. Needs the scope `read`.
   */
  readonly values = (
    body: Schemas["ValuesQuery"],
    options: CallOptions = {},
  ): Promise<Schemas["ValuesFound"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memories/values",
      body,
      as: "json",
      options,
    });
}

/**
 * Operations named `memory_files.…`.
 */
export class MemoryFiles {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Carry out a command of an agent's memory tool
   *
   * Six commands over a tree of files from `/memories` on; each file is a memory, so searches
   * find it. `output`, or the message of an error, is what to tell the agent. Everything but
   * `view` needs the scope `write`, and costs 1 credit. Needs the scope `read`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly execute = (
    body: Schemas["MemoryCommand"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["MemoryOutput"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memory-tool",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `memory_tools.…`.
 */
export class MemoryTools {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Remember a text
   *
   * Remember a text. Needs the scope `write`. A repeated Idempotency-Key answers with the same
   * resource for as long as it exists.
   */
  readonly insert = (
    body: Schemas["RawMemory"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memory-tools/insert",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Replace a memory's text, if it is still the one the agent knows
   *
   * Compares old_content with the whole text; 409 when they differ. Needs the scope `write`. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly replace = (
    body: Schemas["Replace"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memory-tools/replace",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Index a memory afresh
   *
   * The text and the version stay; its terms, cues and vector are made again. Needs the scope
   * `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly rethink = (
    body: Schemas["Rethink"],
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Memory"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/memory-tools/rethink",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `profile.…`.
 */
export class Profile {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Delete the profile of an end user
   *
   * With its dialectic sessions. Memories stay; only those stored later feed a new profile. Again
   * is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    query: Query<"profile.delete"> = {},
    options: Keyed = {},
  ): Promise<Schemas["plugins__profile__Deleted"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/profile",
      query,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Talk about an end user
   *
   * Answers from the profile and the memories of the user, and keeps hypotheses about them from
   * turn to turn, each with the memories that support it. Needs the scope `write`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly dialectic = (
    body: Schemas["DialecticBody"],
    options: Keyed = {},
  ): Promise<Schemas["DialecticReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/profile/dialectic",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get the profile of an end user
   *
   * A user never seen has an empty one. Needs the scope `read`.
   */
  readonly get = (
    query: Query<"profile.get"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["Profile"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/profile",
      query,
      as: "json",
      options,
    });

  /**
   * Set what is known of an end user
   *
   * Absent fields stay, null clears. `static` replaces the facts set before. Needs the scope
   * `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly update = (
    body: Schemas["ProfilePatch"] = {},
    query: Query<"profile.update"> = {},
    options: Keyed = {},
  ): Promise<Schemas["Profile"]> =>
    this.#transport.send({
      method: "PATCH",
      path: "/v1/profile",
      query,
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `rl.jobs.…`.
 */
export class RlJobs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Poll a training
   *
   * Poll a training. Needs the scope `read`.
   */
  readonly get = (
    jobId: string,
    options: CallOptions = {},
  ): Promise<Schemas["JobView"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/rl/jobs/{job_id}",
      in: { job_id: jobId },
      as: "json",
      options,
    });
}

/**
 * Operations named `rl.…`.
 */
export class Rl {
  readonly #transport: Transport;
  readonly jobs: RlJobs;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.jobs = new RlJobs(transport);
  }

  /**
   * What trainings led to
   *
   * What trainings led to. Needs the scope `read`.
   */
  readonly metrics = (
    options: CallOptions = {},
  ): Promise<Schemas["Metrics"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/rl/metrics",
      as: "json",
      options,
    });

  /**
   * Use an earlier version, or the defaults
   *
   * Use an earlier version, or the defaults. Needs the scope `write`. A repeated Idempotency-Key
   * repeats the answer for 24 hours.
   */
  readonly rollback = (
    body: Schemas["Rollback"],
    options: Keyed = {},
  ): Promise<Schemas["Metrics"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/rl/rollback",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Learn ranking weights from feedback
   *
   * A job. What it learns is used only when it ranks held-out queries better beyond doubt. Needs
   * the scope `write`. Part of the feature `training`, which not every tier has. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly train = (
    body: Schemas["Train"] = {},
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Accepted"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/rl/train",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `search.…`.
 */
export class Search {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Search with boosts, facets, date ranges, diversity and reranking
   *
   * All that a search takes, and more. Boosts, a reranker and diversity change the order of what
   * was found, not what is found; where one of them is asked for, `relevance` is `all` when
   * absent. Facets count over all of it. Needs the scope `read`.
   */
  readonly advanced = (
    body: Schemas["AdvancedBody"],
    options: CallOptions = {},
  ): Promise<Schemas["AdvancedReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/search/advanced",
      body,
      as: "json",
      options,
    });

  /**
   * What is known of a question, for a prompt
   *
   * The memories that answer it as one block that fits a budget of tokens: notes before
   * conversations, these in the order of time, what says the same once, with the days that
   * relative times mean and a marker to cite each memory by. Needs the scope `read`.
   */
  readonly context = (
    body: Schemas["ContextBody"],
    options: CallOptions = {},
  ): Promise<Schemas["ContextReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/context",
      body,
      as: "json",
      options,
    });

  /**
   * Search by the knowledge graph
   *
   * From the entities named, along what held at the time and over the memories that mention the
   * same, to the nearest memories. Paths say how. With scope fields or filters only memories
   * inside them are given and walked over, and only entities and relationships that these
   * memories speak of or that were made without a memory. How an entity or relationship looks
   * (names, attributes, counts and times) is the same for the whole account. Needs the scope
   * `read`.
   */
  readonly graph = (
    body: Schemas["GraphSearch"] = {},
    options: CallOptions = {},
  ): Promise<Schemas["GraphSearchReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/search/graph",
      body,
      as: "json",
      options,
    });

  /**
   * Answer a question from memories
   *
   * With verbatim citations. `answer` is null where nothing stored supports one. Without a
   * language model, or when it fails, the answer is the best sentence itself. Needs the scope
   * `read`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly reason = (
    body: Schemas["ReasonBody"],
    options: Keyed = {},
  ): Promise<Schemas["ReasonReply"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/search/reason",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Memories similar to one
   *
   * The nearest memories by meaning, without the memory itself. `min_score` compares with
   * `normalized_score`. Needs the scope `read`.
   */
  readonly similar = (
    id: string,
    query: Query<"search.similar"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["SearchReply"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/search/similar/{id}",
      in: { id: id },
      query,
      as: "json",
      options,
    });
}

/**
 * Operations named `service.…`.
 */
export class Service {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The description, for people
   *
   * The description, for people.
   */
  readonly docs = (
    options: CallOptions = {},
  ): Promise<string> =>
    this.#transport.send({
      method: "GET",
      path: "/docs",
      as: "text",
      accept: "*/*",
      options,
    });

  /**
   * Is the service ready?
   *
   * Answers 503 until every shard is open. A shard that another process took over is named as
   * fenced, one that cannot find out whether that happened as without a lease. An object store
   * that takes nothing is a check of its own, and 200: reads are answered.
   */
  readonly health = (
    options: CallOptions = {},
  ): Promise<Schemas["Health"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/health",
      as: "json",
      options,
    });

  /**
   * Metrics in Prometheus' text format
   *
   * Metrics in Prometheus' text format.
   */
  readonly metrics = (
    options: CallOptions = {},
  ): Promise<string> =>
    this.#transport.send({
      method: "GET",
      path: "/metrics",
      as: "text",
      accept: "*/*",
      options,
    });

  /**
   * This description
   *
   * This description.
   */
  readonly openapi = (
    options: CallOptions = {},
  ): Promise<string> =>
    this.#transport.send({
      method: "GET",
      path: "/openapi.json",
      as: "text",
      accept: "*/*",
      options,
    });
}

/**
 * Operations named `usage.…`.
 */
export class Usage {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * What was used this month
   *
   * Credits and requests since the first of the month, UTC, up to this request, by operation and
   * by API key. Needs the scope `read`.
   */
  readonly get = (
    options: CallOptions = {},
  ): Promise<Schemas["Usage"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/usage",
      as: "json",
      options,
    });

  /**
   * Usage by hour, day or month
   *
   * Oldest first. Hours are kept for two months and days for two years. Needs the scope `read`.
   */
  readonly history = (
    query: Query<"usage.history"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["HistoryItem"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/usage/history",
      query,
      as: "json",
      options,
    });

  /**
   * How long requests took, and how many failed
   *
   * By operation and by hour, up to eight days back. Times are those in the account's shard, from
   * where a request is let in to its answer; a chat's or an answer's includes its language
   * model's. They are estimated from histograms. Requests that a limit refused are in no figure.
   * Needs the scope `read`.
   */
  readonly latency = (
    query: Query<"usage.latency"> = {},
    options: CallOptions = {},
  ): Promise<Schemas["Latencies"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/usage/latency",
      query,
      as: "json",
      options,
    });

  /**
   * What the account takes of the service at the moment
   *
   * Of the last one or two minutes, or since the service was started. What a process that reads
   * beside the shard does counts a moment later. Needs the scope `read`.
   */
  readonly load = (
    options: CallOptions = {},
  ): Promise<Schemas["Load"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/usage/load",
      as: "json",
      options,
    });
}

/**
 * Operations named `webhooks.dead_letters.…`.
 */
export class WebhooksDeadLetters {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * List the dead letters
   *
   * Deliveries that failed five times, of all webhooks, newest first. They are kept for 30 days.
   * Needs the scope `read`.
   */
  readonly list = (
    query: Query<"webhooks.dead_letters.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Delivery"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/webhooks/dead-letters",
      query,
      as: "json",
      options,
    });

  /**
   * Replay dead letters
   *
   * By their ids, or all of a range of time, up to 1,000 a call. Those of disabled webhooks are
   * left out of a range. Needs the scope `write`. A repeated Idempotency-Key repeats the answer
   * for 24 hours.
   */
  readonly replay = (
    body: Schemas["ReplayMany"] = {},
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Replayed"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/webhooks/dead-letters/replay",
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `webhooks.deliveries.…`.
 */
export class WebhooksDeliveries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Get a delivery with its attempts
   *
   * Get a delivery with its attempts. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    deliveryId: string,
    options: CallOptions = {},
  ): Promise<Schemas["DeliveryDetail"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/webhooks/{id}/deliveries/{delivery_id}",
      in: { id: id, delivery_id: deliveryId },
      as: "json",
      options,
    });

  /**
   * List the deliveries of a webhook
   *
   * Newest first. Delivered ones are kept for a week, failed and skipped ones for 30 days. Needs
   * the scope `read`.
   */
  readonly list = (
    id: string,
    query: Query<"webhooks.deliveries.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Delivery"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/webhooks/{id}/deliveries",
      in: { id: id },
      query,
      as: "json",
      options,
    });

  /**
   * Replay a delivery
   *
   * The same event id, body and idempotency_key, with five attempts more. One that is under way
   * stays as it is. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24
   * hours.
   */
  readonly replay = (
    id: string,
    deliveryId: string,
    options: Keyed & Preferring = {},
  ): Promise<Schemas["Delivery"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/webhooks/{id}/deliveries/{delivery_id}/replay",
      in: { id: id, delivery_id: deliveryId },
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * Operations named `webhooks.…`.
 */
export class Webhooks {
  readonly #transport: Transport;
  readonly deadLetters: WebhooksDeadLetters;
  readonly deliveries: WebhooksDeliveries;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.deadLetters = new WebhooksDeadLetters(transport);
    this.deliveries = new WebhooksDeliveries(transport);
  }

  /**
   * Create a webhook
   *
   * The signing secret is in this answer only. An address in a private or reserved network is
   * 422. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly create = (
    body: Schemas["NewWebhook"],
    options: Keyed = {},
  ): Promise<Schemas["WebhookWithSecret"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/webhooks",
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Delete a webhook
   *
   * With its deliveries, those under way included. Again is 404. Needs the scope `write`. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly delete = (
    id: string,
    options: Keyed = {},
  ): Promise<Schemas["DeletedWebhook"]> =>
    this.#transport.send({
      method: "DELETE",
      path: "/v1/webhooks/{id}",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Get a webhook
   *
   * Get a webhook. Needs the scope `read`.
   */
  readonly get = (
    id: string,
    options: CallOptions = {},
  ): Promise<Schemas["Webhook"]> =>
    this.#transport.send({
      method: "GET",
      path: "/v1/webhooks/{id}",
      in: { id: id },
      as: "json",
      options,
    });

  /**
   * List webhooks
   *
   * List webhooks. Needs the scope `read`.
   */
  readonly list = (
    query: Query<"webhooks.list"> = {},
    options: CallOptions = {},
  ): Listing<Schemas["Webhook"]> =>
    new Listing(this.#transport, {
      method: "GET",
      path: "/v1/webhooks",
      query,
      as: "json",
      options,
    });

  /**
   * Rotate the signing secret
   *
   * The new secret signs X-Webhook-Signature-256 at once; until the grace is over the old one
   * signs the header X-Webhook-Signature-256-Previous beside it. Needs the scope `write`. A
   * repeated Idempotency-Key repeats the answer for 24 hours.
   */
  readonly rotateSecret = (
    id: string,
    body: Schemas["Rotation"] = {},
    options: Keyed = {},
  ): Promise<Schemas["RotatedWebhook"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/webhooks/{id}/rotate-secret",
      in: { id: id },
      body,
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Send a test event
   *
   * Of the first kind the webhook takes, with the data `{test: true, id: <webhook id>}`. A
   * disabled webhook is 409. Needs the scope `write`. A repeated Idempotency-Key repeats the
   * answer for 24 hours.
   */
  readonly test = (
    id: string,
    options: Keyed & Preferring = {},
  ): Promise<Schemas["TestEvent"]> =>
    this.#transport.send({
      method: "POST",
      path: "/v1/webhooks/{id}/test",
      in: { id: id },
      as: "json",
      keyed: true,
      options,
    });

  /**
   * Replace a webhook's url, events, description and status
   *
   * What is still to be delivered goes to the new url. Enabling a disabled webhook forgets its
   * failures; what was skipped meanwhile can be replayed. Needs the scope `write`. A repeated
   * Idempotency-Key repeats the answer for 24 hours.
   */
  readonly update = (
    id: string,
    body: Schemas["WebhookReplacement"],
    options: Keyed = {},
  ): Promise<Schemas["Webhook"]> =>
    this.#transport.send({
      method: "PUT",
      path: "/v1/webhooks/{id}",
      in: { id: id },
      body,
      as: "json",
      keyed: true,
      options,
    });
}

/**
 * All operations.
 */
export class Operations {
  readonly #transport: Transport;
  readonly account: Account;
  readonly auth: Auth;
  readonly billing: Billing;
  readonly chat: Chat;
  readonly collections: Collections;
  readonly confidence: Confidence;
  readonly corrections: Corrections;
  readonly decisions: Decisions;
  readonly documents: Documents;
  readonly feedback: Feedback;
  readonly graph: Graph;
  readonly learning: Learning;
  readonly memories: Memories;
  readonly memoryFiles: MemoryFiles;
  readonly memoryTools: MemoryTools;
  readonly profile: Profile;
  readonly rl: Rl;
  readonly search: Search & {
    /**
     * Search memories
     *
     * By words and meaning. Nothing is padded: what does not stand on its own is left out, and
     * `no_match` says so. Needs the scope `read`.
     */
    (body: Schemas["SearchBody"], options?: CallOptions): Promise<Schemas["SearchReply"]>;
  };
  readonly service: Service;
  readonly usage: Usage;
  readonly webhooks: Webhooks;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.account = new Account(transport);
    this.auth = new Auth(transport);
    this.billing = new Billing(transport);
    this.chat = new Chat(transport);
    this.collections = new Collections(transport);
    this.confidence = new Confidence(transport);
    this.corrections = new Corrections(transport);
    this.decisions = new Decisions(transport);
    this.documents = new Documents(transport);
    this.feedback = new Feedback(transport);
    this.graph = new Graph(transport);
    this.learning = new Learning(transport);
    this.memories = new Memories(transport);
    this.memoryFiles = new MemoryFiles(transport);
    this.memoryTools = new MemoryTools(transport);
    this.profile = new Profile(transport);
    this.rl = new Rl(transport);
    this.search = Object.assign((
      body: Schemas["SearchBody"],
      options: CallOptions = {},
    ): Promise<Schemas["SearchReply"]> =>
      this.#transport.send({
        method: "POST",
        path: "/v1/search",
        body,
        as: "json",
        options,
      }), new Search(transport));
    this.service = new Service(transport);
    this.usage = new Usage(transport);
    this.webhooks = new Webhooks(transport);
  }
}
