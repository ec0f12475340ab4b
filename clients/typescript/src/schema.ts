// Written by generate.mjs from the OpenAPI document; change that, not this.
// SHA-256 of the document: 9bbd330e3652d9803765af493c200d48ecc78962b94c7f25be532a921dbe2317

export interface paths {
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The description, for people
         * @description The description, for people.
         */
        get: operations["service.docs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics in Prometheus' text format
         * @description Metrics in Prometheus' text format.
         */
        get: operations["service.metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This description
         * @description This description.
         */
        get: operations["service.openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase the account and everything it holds
         * @description Needs `confirm=erase-account`, else 400. Every credential of the account is refused from now on, this one included; the e-mail address is free again. All stores are swept and the key that seals the account's rows is destroyed. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["account.erase"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export everything the account holds
         * @description One JSON object a line, streamed. The last line is the manifest, with the count and SHA-256 of each kind's lines and this installation's signatures, of all and of each block of lines; without it the export is not whole. Secrets (password, keys) are not in it. Needs the scope `admin`.
         */
        get: operations["account.export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/export/parts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export in parts
         * @description The same records, for a client that wants to go on where it was interrupted. Needs the scope `admin`.
         */
        get: operations["account.export_part"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import an export
         * @description The lines themselves as application/x-ndjson, or as `records`. Contents, versions, times and order stay; ids get this account's tag. A manifest is checked first. Unless this installation has signed it for this account, the actors of all versions are marked with `imported:`, since nobody knows whether the history is so. It can be repeated: what is here already is left alone. A memory that was not here costs a credit. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["account.import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/import/parts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import a part, in one transaction
         * @description A memory that was not here costs a credit. Cut into blocks of `block_records` lines, each sent with its signature of the manifest's `blocks`, an export is verified as in one piece. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["account.import_part"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/account/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the cleanups after deletions, with a receipt for each store
         * @description Those of the last week. Needs the scope `read`.
         */
        get: operations["account.receipts"];
        put?: never;
        /**
         * Read the receipts of an erased account
         * @description With the text that its DELETE answered; no other credential is left.
         */
        post: operations["account.erasure"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the API keys
         * @description Newest first, with what each was used for up to this request. Needs the scope `read`.
         */
        get: operations["auth.api_keys.list"];
        put?: never;
        /**
         * Mint an API key
         * @description The key's text is in this answer only. Its scopes are read and write unless others are named. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.api_keys.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/api-keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete an API key
         * @description The key is refused from the next request on. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["auth.api_keys.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/invitation-request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for an invitation to register
         * @description The address is sent what a registration takes as its `invitation` for a day, and needs where `auth.registration` is `mailed`; or, if it has an account, a ticket that sets a new password; at most five mails an hour. The answer is always the same. 403 where `auth.registration` is `invite` or `closed`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.invitation.request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log in
         * @description Trades the e-mail address and password for a new access token, and begins a session with it. A wrong one of either is 401, and after ten of them from one network (IPv6: /64) it is 429 for a while, which doubles up to a minute. Where the account has a second factor it is 401 with `totp_required` as the `type` in `details`, until a `code` comes along. A repeated request begins another session.
         */
        post: operations["auth.login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log out
         * @description Revokes the access token of this request. Other tokens and API keys keep working; an API key cannot log out (400). Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the account of the credential
         * @description Get the account of the credential. Needs the scope `read`.
         */
        get: operations["auth.me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change the password
         * @description Ends every session but the one that asks. API keys keep working; delete those that somebody else may have. A wrong current password is 403, and counts as a failed login. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/password-reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for a new password
         * @description If the address has an account, it is sent a ticket that sets a new password once, within an hour; at most five an hour. The answer is always the same. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.password_reset.request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/password-reset/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Set a new password with a ticket
         * @description Ends every session and proves the e-mail address. API keys keep working, unless it is the first proof: until then they may be anybody's, and are deleted. A ticket that was used, has expired, or is older than the password is 403. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.password_reset.confirm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Register an account
         * @description Makes an account and logs it in. The access token is usable at once. A taken e-mail address is 409. Where `auth.registration` is `invite`, it needs an `invitation` of the operator, where it is `mailed` one of POST /v1/auth/invitation-request, and where it is `closed`, nobody registers: 403. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.register"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions
         * @description Those that registration and login began and that have not ended, the newest first. A token of a release before sessions were listed is not among them. Needs the scope `admin`.
         */
        get: operations["auth.sessions.list"];
        put?: never;
        post?: never;
        /**
         * End all other sessions
         * @description Every access token but the one that asks is refused from the next request on; asked with an API key, every one. API keys keep working. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["auth.sessions.delete_others"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a session
         * @description Its access token is refused from the next request on. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["auth.sessions.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for the secret of a second factor
         * @description For an authenticator app (TOTP, SHA-1, 6 digits, 30 seconds). It counts once a code of it is confirmed; until then another call replaces it. 409 where there is one that counts. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.totp.create"];
        /**
         * Turn the second factor off
         * @description With a code of the app or a recovery code. A wrong one is 403. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["auth.totp.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/totp/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Turn the second factor on
         * @description From now on a login needs a `code`, or a recovery code; API keys and sessions go on. A wrong code is 403. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.totp.confirm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/verify-email": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm an e-mail address with a ticket
         * @description With the ticket that a registration mails where `auth.verify_email` is on, or POST /v1/auth/verify-email/request. It works once; another proof is a new password (POST /v1/auth/password-reset). A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.verify_email"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/auth/verify-email/request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for a mail that confirms an address
         * @description If the address has an account and is not confirmed, it is sent another ticket for POST /v1/auth/verify-email, good for a day; at most five an hour. The answer is always the same. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["auth.verification.request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/downgrade": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Downgrade the plan
         * @description When the month ends; until then nothing changes. The present tier cancels a downgrade that is pending. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["billing.downgrade"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List invoices and credit notes
         * @description List invoices and credit notes. Needs the scope `read`.
         */
        get: operations["billing.invoices.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/invoices/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an invoice
         * @description Get an invoice. Needs the scope `read`.
         */
        get: operations["billing.invoices.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/invoices/{id}/html": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an invoice as a page to print
         * @description Get an invoice as a page to print. Needs the scope `read`.
         */
        get: operations["billing.invoices.page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/stripe/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Where Stripe reports what was paid
         * @description For Stripe alone: a report is believed only with its signature. 404 where billing.provider is not stripe. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["billing.stripe_events"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/subscription": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the subscription
         * @description Get the subscription. Needs the scope `read`.
         */
        get: operations["billing.subscription"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/tiers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tiers
         * @description All of them, the lowest first, on one page.
         */
        get: operations["billing.tiers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/billing/upgrade": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upgrade the plan
         * @description At once, or, where a payment provider collects, as soon as the invoice is paid. It charges the difference for the days left, today included. The upgrade cancels a pending downgrade; one that is not paid within the month is forgone. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["billing.upgrade"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat completion with memory
         * @description OpenAI's request and response. What memory knows about the user's last message is put in front of the conversation, fenced and marked as untrusted data. With `stream: true` the answer is a stream of server-sent events, whose last chunk before usage has `memory`. Without a configured language model: 503. Needs the scope `read`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["chat.completions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List collections
         * @description Newest first, the default collection included. Needs the scope `read`.
         */
        get: operations["collections.list"];
        put?: never;
        /**
         * Create a collection
         * @description Create a collection. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["collections.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections/all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete all collections and everything in them
         * @description Needs `confirm=delete-all-collections`, else 400. The default collection stays, emptied. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["collections.delete_all"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections/bulk-delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete collections by their ids
         * @description One transaction, with a result for each id. The default collection is `forbidden`. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["collections.bulk_delete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections/default": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the default collection
         * @description Every account has one; memories without a collection_id go there. Needs the scope `read`.
         */
        get: operations["collections.get_default"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/collections/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a collection
         * @description The ETag is its version. Needs the scope `read`.
         */
        get: operations["collections.get"];
        put?: never;
        post?: never;
        /**
         * Delete a collection and everything in it
         * @description Nothing in it can be read from now on; what was derived from it is swept in the background. Again is 404. With If-Match, another version than the named one is 412. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["collections.delete"];
        options?: never;
        head?: never;
        /**
         * Change a collection
         * @description Fields that are absent stay; null clears description and metadata; metadata is replaced whole. With If-Match, another version than the named one is 412. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        patch: operations["collections.update"];
        trace?: never;
    };
    "/v1/confidence": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether to act or to ask
         * @description From how similar decisions went and what people have corrected. Advice only. Needs the scope `read`.
         */
        get: operations["confidence.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/context": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What is known of a question, for a prompt
         * @description The memories that answer it as one block that fits a budget of tokens: notes before conversations, these in the order of time, what says the same once, with the days that relative times mean and a marker to cite each memory by. Needs the scope `read`.
         */
        post: operations["search.context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/corrections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List corrections
         * @description List corrections. Needs the scope `read`.
         */
        get: operations["corrections.list"];
        put?: never;
        /**
         * Put something right
         * @description Stores the corrected content as a memory; the memory it corrects is superseded in the same transaction. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["corrections.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/corrections/relevant": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Corrections that matter for a task
         * @description Corrections that matter for a task. Needs the scope `read`.
         */
        get: operations["corrections.relevant"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/corrections/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a correction
         * @description Get a correction. Needs the scope `read`.
         */
        get: operations["corrections.get"];
        put?: never;
        post?: never;
        /**
         * Delete a correction and its memory
         * @description What it had superseded is found again. Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["corrections.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List logged decisions
         * @description List logged decisions. Needs the scope `read`.
         */
        get: operations["decisions.list"];
        put?: never;
        /**
         * Log a decision and its outcome
         * @description Log a decision and its outcome. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["decisions.log"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log a decision and its outcome
         * @description Log a decision and its outcome. The same as `POST /v1/decisions`. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["decisions.log.alias1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions/similar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Past decisions like the one at hand
         * @description Past decisions like the one at hand. Needs the scope `read`.
         */
        get: operations["decisions.similar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/decisions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a logged decision
         * @description Get a logged decision. Needs the scope `read`.
         */
        get: operations["decisions.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List documents
         * @description List documents. Needs the scope `read`.
         */
        get: operations["documents.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a document
         * @description PDF, DOCX, PPTX, XLSX, TXT, MD, HTML, CSV, JSON, EML, SRT, VTT, MP3, WAV, M4A, FLAC, OGG, MP4, WebM, MOV, PNG, JPEG, WebP, by content. 202: it is stored and will be read, or once more where it had failed or memories of its chunks were deleted. 200: the collection has it already. Of a document that is there, title, tags and metadata stay unless they are sent. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["documents.upload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a document
         * @description Get a document. Needs the scope `read`.
         */
        get: operations["documents.get"];
        put?: never;
        post?: never;
        /**
         * Delete a document and the memories of its chunks
         * @description Neither can be read or found from now on; files and derived data are swept in the background. Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["documents.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents/{id}/chunks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the chunks of a document
         * @description In the order of the text. Needs the scope `read`.
         */
        get: operations["documents.chunks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents/{id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the file of a document
         * @description Byte for byte as it was uploaded. 404 once it was removed, as that of a document that failed is (`file_removed_at`). Needs the scope `read`.
         */
        get: operations["documents.content"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/documents/{id}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the extracted text of a document
         * @description The text that the offsets of chunks refer to, in UTF-8. Needs the scope `read`.
         */
        get: operations["documents.text"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/feedback/missing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say what should have been found
         * @description Say what should have been found. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["feedback.missing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/feedback/ranking": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say where a memory should have stood
         * @description Say where a memory should have stood. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["feedback.ranking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/feedback/relevance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say whether a memory answers a query
         * @description Say whether a memory answers a query. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["feedback.relevance"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/feedback/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the feedback adds up to
         * @description What the feedback adds up to. Needs the scope `read`.
         */
        get: operations["feedback.stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the service ready?
         * @description Answers 503 until every shard is open. A shard that another process took over is named as fenced, one that cannot find out whether that happened as without a lease. An object store that takes nothing is a check of its own, and 200: reads are answered.
         */
        get: operations["service.health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/contradictions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List claims that contradict each other
         * @description Functional claims of one subject whose intervals overlap with different targets, with both sides' evidence. Needs the scope `read`. Part of the feature `graph_query`, which not every tier has.
         */
        get: operations["graph.contradictions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List entities
         * @description Newest first. Needs the scope `read`.
         */
        get: operations["graph.entities.list"];
        put?: never;
        /**
         * Create an entity, or add to one
         * @description The same name and type again is 200: aliases and attributes are merged. Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["graph.entities.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/entities/{entity_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an entity with its relationships and sources
         * @description By id, name or alias; names are compared without case. Needs the scope `read`.
         */
        get: operations["graph.entities.get"];
        put?: never;
        post?: never;
        /**
         * Delete an entity with its relationships
         * @description Again is 404. A name that several entities go by is 409, with their ids. The memories that mention it stay. Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["graph.entities.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/entities/{entity_name}/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Merge an entity into another one
         * @description Two entries for the same thing become the one named `into`: it gets the names, the attributes where it has none of its own, the relationships with their ids and times, and the mentions; then the other one is gone, and its name means this one. A large entity is merged in several calls: again until `complete`. A name that several entities go by is 409, with their ids. Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["graph.entities.merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask what held at a time, as it was known at a time
         * @description More than two hops need the feature `graph_query`. Needs the scope `read`.
         */
        post: operations["graph.query"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/relationships": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a relationship between two entities
         * @description Names that do not exist are created. The same ends, type and valid_from again is 200, attributes merged. Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["graph.relationships.create"];
        /**
         * Delete a relationship
         * @description Named in the body or in the query; on both clocks. Again is 404. Needs the scope `write`. Part of the feature `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["graph.relationships.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Figures about the graph
         * @description Kept up with every change, never counted on demand. Needs the scope `read`.
         */
        get: operations["graph.stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/knowledge-graph/timeline/{entity_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List an entity's relationships in time
         * @description Ascending by valid_from, those that always held first. Needs the scope `read`.
         */
        get: operations["graph.timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Choose an action, or record one, with its propensity
         * @description The choice is drawn from the distribution in the receipt, so its probability is exact. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["learning.decide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/decisions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a decision and its outcomes
         * @description Get a decision and its outcomes. Needs the scope `read`.
         */
        get: operations["learning.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/decisions/{id}/outcomes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report a delayed, final or corrected outcome
         * @description Nothing is overwritten: of each metric the latest counts. A decision without outcome is censored, no failure. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["learning.report"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the policies decisions were made under
         * @description Newest first. A policy begins with its first decision. Needs the scope `read`.
         */
        get: operations["learning.policies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/policies/{key}/evaluate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Whether the evidence for a policy suffices
         * @description The bounds are an anytime-valid confidence sequence: they hold however often you ask and whenever you stop. Needs the scope `read`.
         */
        post: operations["learning.evaluate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/learning/policies/{key}/insights": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a policy's decisions say of its actions
         * @description Posteriors and point estimates; they describe, and decide nothing. Needs the scope `read`.
         */
        get: operations["learning.insights"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List memories
         * @description Newest first, without superseded ones unless asked for. Needs the scope `read`.
         */
        get: operations["memories.list"];
        put?: never;
        /**
         * Create a memory, or one for each message of a conversation
         * @description 201: searches find it. 202: it is stored, and will be found when its job is done. Costs 1 credit per memory. With `infer`, what can be learned from it is stored instead (5 credits); `job_id` names the job. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["memories.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete all memories, or all that pass the filters
         * @description Needs `confirm=delete-all-memories`, else 400. None can be read from now on; the rest is swept later. Texts that still wait to be processed and pass the filters go, too: their jobs fail. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["memories.delete_all"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report duplicates, stale and unused memories
         * @description Of the newest memories of the scope. Changes nothing. Needs the scope `read`.
         */
        get: operations["memories.audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create up to 100 memories
         * @description All accepted items commit in one transaction, with a result for each. Costs 1 credit per item. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["memories.create_batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/bulk-delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete up to 500 memories by their ids
         * @description One transaction, with a result for each id. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.bulk_delete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/delete-matching": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete the memories that pass a filter
         * @description However many there are, in one transaction: none can be read from now on, and the rest is swept later. Superseded ones are deleted too. Takes conditions of equality and times. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.delete_matching"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create memories by the thousand
         * @description The memories as application/x-ndjson, one a line, or as `memories`. The answer is application/x-ndjson, too, and comes while they are stored: an outcome for each line, in order, and a summary as the last. They are stored a hundred at a time. An answer without a summary was broken off, and one whose summary has an `error` stopped: with an Idempotency-Key it goes on when the same lines are sent again, and what is stored already is not stored, or charged, again. A body with a line that is no JSON object is refused as a whole. Costs 1 credit per memory. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List indexing and ingestion jobs
         * @description List indexing and ingestion jobs. Needs the scope `read`.
         */
        get: operations["memories.jobs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll an indexing or ingestion job
         * @description Poll an indexing or ingestion job. Needs the scope `read`.
         */
        get: operations["memories.jobs.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/jobs/{job_id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take back what an ingestion job stored
         * @description Deletes the memories it created, but for those whose text was edited since; what the deleted ones had superseded holds again. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.jobs.undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let one memory stand for its near duplicates
         * @description The duplicates are superseded by the one that is kept; restoring one of them undoes it. Ingestion merges by itself. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/process": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extract memories from a text or a conversation
         * @description Facts are deduplicated and conflicts resolved; what is replaced is superseded, never lost. Answers 202 with the job; with `Prefer: wait=N` 200 with its result, if it is done within N seconds. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["memories.process"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List memories that pass a filter
         * @description Newest first, from any offset on; the filter language of searches. What would read or compare too much is 422 and says what would narrow it. Needs the scope `read`.
         */
        post: operations["memories.query"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/raw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a memory from a text as it is
         * @description Create a memory from a text as it is. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["memories.create_raw"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/scopes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users, agents, applications and runs that have memories
         * @description With how many memories each has. Needs the scope `read`.
         */
        get: operations["memories.scopes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/values": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the distinct values of a field
         * @description With how many memories have each, among those that pass the filter. Tags and metadata are read from the memories; where that would read too much it is 422. Needs the scope `read`.
         */
        post: operations["memories.values"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a memory
         * @description The ETag is its version. Needs the scope `read`.
         */
        get: operations["memories.get"];
        put?: never;
        post?: never;
        /**
         * Delete a memory
         * @description With its history and all that was derived from it. Again is 404. With If-Match, another version than the named one is 412. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["memories.delete"];
        options?: never;
        head?: never;
        /**
         * Change a memory
         * @description Absent fields stay, null clears. New content is indexed again; until then (202) neither old nor new text is found. With If-Match, another version than the named one is 412. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        patch: operations["memories.update"];
        trace?: never;
    };
    "/v1/memories/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a memory's versions
         * @description Oldest first, the current one last. Needs the scope `read`.
         */
        get: operations["memories.history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/{id}/merged": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the near duplicates that a memory stands for
         * @description Merged by ingestion or on request, by id; the history of each says when and why. Needs the scope `read`.
         */
        get: operations["memories.merged"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memories/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Bring a superseded memory back
         * @description 409 when it is not superseded. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memories.restore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memory-jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll an indexing or ingestion job
         * @description Poll an indexing or ingestion job. The same as `GET /v1/memories/jobs/{job_id}`. Needs the scope `read`.
         */
        get: operations["memories.jobs.get.alias1"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memory-tool": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Carry out a command of an agent's memory tool
         * @description Six commands over a tree of files from `/memories` on; each file is a memory, so searches find it. `output`, or the message of an error, is what to tell the agent. Everything but `view` needs the scope `write`, and costs 1 credit. Needs the scope `read`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memory_files.execute"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memory-tools/insert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remember a text
         * @description Remember a text. Needs the scope `write`. A repeated Idempotency-Key answers with the same resource for as long as it exists.
         */
        post: operations["memory_tools.insert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memory-tools/replace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace a memory's text, if it is still the one the agent knows
         * @description Compares old_content with the whole text; 409 when they differ. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memory_tools.replace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/memory-tools/rethink": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Index a memory afresh
         * @description The text and the version stay; its terms, cues and vector are made again. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["memory_tools.rethink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models of chats
         * @description As OpenAI's clients ask for them: `mneme`, the configured one and what `chat.models_allowed` names. None without a configured language model. Needs the scope `read`.
         */
        get: operations["chat.models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the profile of an end user
         * @description A user never seen has an empty one. Needs the scope `read`.
         */
        get: operations["profile.get"];
        put?: never;
        post?: never;
        /**
         * Delete the profile of an end user
         * @description With its dialectic sessions. Memories stay; only those stored later feed a new profile. Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["profile.delete"];
        options?: never;
        head?: never;
        /**
         * Set what is known of an end user
         * @description Absent fields stay, null clears. `static` replaces the facts set before. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        patch: operations["profile.update"];
        trace?: never;
    };
    "/v1/profile/dialectic": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Talk about an end user
         * @description Answers from the profile and the memories of the user, and keeps hypotheses about them from turn to turn, each with the memories that support it. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["profile.dialectic"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rl/jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Poll a training
         * @description Poll a training. Needs the scope `read`.
         */
        get: operations["rl.jobs.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rl/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What trainings led to
         * @description What trainings led to. Needs the scope `read`.
         */
        get: operations["rl.metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rl/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use an earlier version, or the defaults
         * @description Use an earlier version, or the defaults. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["rl.rollback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rl/train": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Learn ranking weights from feedback
         * @description A job. What it learns is used only when it ranks held-out queries better beyond doubt. Needs the scope `write`. Part of the feature `training`, which not every tier has. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["rl.train"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search memories
         * @description By words and meaning. Nothing is padded: what does not stand on its own is left out, and `no_match` says so. Needs the scope `read`.
         */
        post: operations["search.search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search/advanced": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search with boosts, facets, date ranges, diversity and reranking
         * @description All that a search takes, and more. Boosts, a reranker and diversity change the order of what was found, not what is found; where one of them is asked for, `relevance` is `all` when absent. Facets count over all of it. Needs the scope `read`.
         */
        post: operations["search.advanced"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search by the knowledge graph
         * @description From the entities named, along what held at the time and over the memories that mention the same, to the nearest memories. Paths say how. With scope fields or filters only memories inside them are given and walked over, and only entities and relationships that these memories speak of or that were made without a memory. How an entity or relationship looks (names, attributes, counts and times) is the same for the whole account. Needs the scope `read`.
         */
        post: operations["search.graph"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search/reason": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer a question from memories
         * @description With verbatim citations. `answer` is null where nothing stored supports one. Without a language model, or when it fails, the answer is the best sentence itself. Needs the scope `read`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["search.reason"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search/similar/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Memories similar to one
         * @description The nearest memories by meaning, without the memory itself. `min_score` compares with `normalized_score`. Needs the scope `read`.
         */
        get: operations["search.similar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What was used this month
         * @description Credits and requests since the first of the month, UTC, up to this request, by operation and by API key. Needs the scope `read`.
         */
        get: operations["usage.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Usage by hour, day or month
         * @description Oldest first. Hours are kept for two months and days for two years. Needs the scope `read`.
         */
        get: operations["usage.history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/latency": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How long requests took, and how many failed
         * @description By operation and by hour, up to eight days back. Times are those in the account's shard, from where a request is let in to its answer; a chat's or an answer's includes its language model's. They are estimated from histograms. Requests that a limit refused are in no figure. Needs the scope `read`.
         */
        get: operations["usage.latency"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the account takes of the service at the moment
         * @description Of the last one or two minutes, or since the service was started. What a process that reads beside the shard does counts a moment later. Needs the scope `read`.
         */
        get: operations["usage.load"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description List webhooks. Needs the scope `read`.
         */
        get: operations["webhooks.list"];
        put?: never;
        /**
         * Create a webhook
         * @description The signing secret is in this answer only. An address in a private or reserved network is 422. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["webhooks.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the dead letters
         * @description Deliveries that failed five times, of all webhooks, newest first. They are kept for 30 days. Needs the scope `read`.
         */
        get: operations["webhooks.dead_letters.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/dead-letters/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay dead letters
         * @description By their ids, or all of a range of time, up to 1,000 a call. Those of disabled webhooks are left out of a range. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["webhooks.dead_letters.replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook
         * @description Get a webhook. Needs the scope `read`.
         */
        get: operations["webhooks.get"];
        /**
         * Replace a webhook's url, events, description and status
         * @description What is still to be delivered goes to the new url. Enabling a disabled webhook forgets its failures; what was skipped meanwhile can be replayed. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        put: operations["webhooks.update"];
        post?: never;
        /**
         * Delete a webhook
         * @description With its deliveries, those under way included. Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        delete: operations["webhooks.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of a webhook
         * @description Newest first. Delivered ones are kept for a week, failed and skipped ones for 30 days. Needs the scope `read`.
         */
        get: operations["webhooks.deliveries.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/deliveries/{delivery_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a delivery with its attempts
         * @description Get a delivery with its attempts. Needs the scope `read`.
         */
        get: operations["webhooks.deliveries.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/deliveries/{delivery_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a delivery
         * @description The same event id, body and idempotency_key, with five attempts more. One that is under way stays as it is. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["webhooks.deliveries.replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the signing secret
         * @description The new secret signs X-Webhook-Signature-256 at once; until the grace is over the old one signs the header X-Webhook-Signature-256-Previous beside it. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["webhooks.rotate_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test event
         * @description Of the first kind the webhook takes, with the data `{test: true, id: <webhook id>}`. A disabled webhook is 409. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.
         */
        post: operations["webhooks.test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "collection.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** collection.created */
        post: operations["event.collection.created"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "collection.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** collection.updated */
        post: operations["event.collection.updated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "memory.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** memory.created */
        post: operations["event.memory.created"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "memory.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** memory.updated */
        post: operations["event.memory.updated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "memory.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** memory.deleted */
        post: operations["event.memory.deleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "search.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** search.completed */
        post: operations["event.search.completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** document.created */
        post: operations["event.document.created"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.processed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** document.processed */
        post: operations["event.document.processed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** document.failed */
        post: operations["event.document.failed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "document.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** document.deleted */
        post: operations["event.document.deleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "billing.suspended": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** billing.suspended */
        post: operations["event.billing.suspended"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "billing.resumed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** billing.resumed */
        post: operations["event.billing.resumed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "memory.tier_changed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** memory.tier_changed */
        post: operations["event.memory.tier_changed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.feedback_received": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** user.feedback_received */
        post: operations["event.user.feedback_received"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "rl.training_started": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** rl.training_started */
        post: operations["event.rl.training_started"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "rl.training_completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** rl.training_completed */
        post: operations["event.rl.training_completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "rl.training_failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** rl.training_failed */
        post: operations["event.rl.training_failed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        Accepted: {
            /** @description The job that trains. */
            job_id: string;
            /** @description Where it reports. */
            status_url: string;
        };
        Account: {
            /** @description The account's id. */
            user_id: string;
            /** @description The normalised e-mail address. */
            email: string;
            /** @description The account holder's name. */
            full_name: string;
            /** @description The tier of the account's plan. */
            tier: string;
            /** @description When it was registered (ISO 8601). */
            created_at: string;
            /** @description Whether a mail proved that its holder has the e-mail address. */
            email_verified: boolean;
            /** @description Whether a login needs a code beside the password. */
            second_factor: boolean;
        };
        ActionInsight: {
            action_key: string;
            /** @description Decisions that took it. */
            count: number;
            /** @description Of these, how many have an outcome. */
            outcomes: number;
            /** @description And how many have none yet. */
            censored: number;
            posterior: components["schemas"]["Posterior"];
            /** @description Of being the best of the actions shown, by the posteriors. */
            probability_best: number;
            /** @description (Σw)² / Σw². */
            effective_sample_size: number;
            /** @description What always taking it would bring: points, without guarantee. */
            estimators: components["schemas"]["Estimators"];
        };
        AdvancedBody: {
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Search this collection only. */
            collection_id?: string | null;
            /** @description Only memories of this end user. */
            user_id?: string | null;
            /** @description Only memories of this agent. */
            agent_id?: string | null;
            /** @description Only memories of this run. */
            run_id?: string | null;
            /** @description Only memories of this application. */
            app_id?: string | null;
            /** @description Only memories of this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /** @description Search what was known at this instant (of a date without a time, at the end of that day): memories stored by then, superseded ones too when that happened later. They are searched with the content they have now. */
            as_of?: string | null;
            /** @description What yesterday, last week and the like count from; as_of or else now when absent. */
            reference_date?: string | null;
            /**
             * @description Which channels propose candidates.
             * @default hybrid
             */
            search_type?: ("hybrid" | "vector" | "bm25" | "graph") | null;
            /**
             * @description Leave out late interaction, which compares word by word: sooner, and less exact.
             * @default false
             */
            fast?: boolean | null;
            /**
             * @description At most so many results.
             * @default 10
             */
            limit?: number | null;
            /**
             * @description Skip so many results.
             * @default 0
             */
            offset?: number | null;
            /** @description Leave out results whose normalized_score is lower. */
            threshold?: number | null;
            /** @description Another name for threshold; of two, the higher one counts. */
            min_score?: number | null;
            /** @description Keep of the page's results, best first, those whose contents fit into so many tokens together; one that does not fit is left out. A token is estimated as four ASCII characters, or one other. */
            token_budget?: number | null;
            /**
             * @description Also search memories that a newer one replaced.
             * @default false
             */
            include_superseded?: boolean | null;
            /**
             * @description Also return weak results, flagged, instead of no_match.
             * @default false
             */
            include_low_confidence?: boolean | null;
            /** @description How far below the best result others may stand: strict keeps few and surer ones, balanced more, and more yet where several things are asked for, all every one that stands; balanced, unless the installation says otherwise, when absent from a hybrid search, else all. include_low_confidence counts as all. */
            relevance?: ("strict" | "balanced" | "all") | null;
            /**
             * @description Say what each feature contributed to each score.
             * @default false
             */
            explain?: boolean | null;
            /**
             * @description Another name for explain.
             * @default false
             */
            debug?: boolean | null;
            /**
             * @description compact leaves out metadata, tags, highlights and explanations.
             * @default full
             */
            view?: ("compact" | "full") | null;
            /** @description Only what happened at this instant or later (occurred_at). */
            date_range_start?: string | null;
            /** @description Only what happened at this instant or earlier (occurred_at); of a date without a time, on that day too. */
            date_range_end?: string | null;
            /** @description What counts for more, or less, in the order of results. */
            boosts?: components["schemas"]["Boosts"] | null;
            /** @description Fields whose values are counted over all results: collection_id, user_id, agent_id, run_id, app_id, session_id, speaker, role, tier, tags, source_type, source, source_reference, title, conflict_status, kind, metadata.<path>. */
            facets?: string[] | null;
            /**
             * @description Let the configured reranker order the first results.
             * @default false
             */
            rerank?: boolean | null;
            /**
             * @description 0 orders by relevance alone, 1 by how little a result repeats those before it.
             * @default 0
             */
            diversity?: number | null;
        };
        AdvancedReply: {
            query: string;
            results: components["schemas"]["Hit"][];
            /** @description How many memories passed the threshold, before offset and limit, of those that were looked at: each channel proposes `search.candidates`, or as many as offset and limit ask for where that is more, 1,000 at most. */
            total: number;
            search_type: string;
            processing_time_ms: number;
            /** @description Nothing stored stands as an answer; there are no results then. */
            no_match: boolean;
            /** @description Better not to answer from these results. */
            abstain_recommended: boolean;
            /** @description Why. subject_conflict: what the query asks of one speaker fits another one better. */
            abstain_reason?: ("no_match" | "weak_evidence" | "subject_conflict") | null;
            /** @description 0 to 1; how likely the results hold an answer. It ranks queries; it is no probability. */
            query_confidence: number;
            grounding: components["schemas"]["Grounding"];
            evidence_ids: string[];
            safety_contract_version: string;
            /** @description Always false: scores rank, they are no probabilities. */
            scores_calibrated: boolean;
            /** @description With `explain`: the section of the settings whose weights were used. */
            ranking_profile?: ("ranking" | "ranking_notes" | "ranking_fast") | null;
            reranker_applied: boolean;
            /** @description Whether a channel was missing; degraded_reasons says which. */
            degraded: boolean;
            degraded_reasons: string[];
            query_entities: string[];
            /** @description Each facet's most frequent values, counted over all `total` results. */
            facets: {
                [key: string]: components["schemas"]["FacetCount"][];
            };
        };
        Attempt: {
            /** @description When its outcome was known (ISO 8601). */
            at: string;
            /** @description The receiver's HTTP status; null without an answer. */
            status_code: number | null;
            /** @description How long it took. */
            duration_ms: number;
            /** @description Why it failed; null when it succeeded. */
            error: string | null;
            /** @description The first 16 KiB of the answer, as text. */
            response_body: string;
        };
        Audit: {
            /** @description Memories looked at, the newest of the scope. */
            examined: number;
            /** @description Groups of near duplicates. */
            duplicates: components["schemas"]["DuplicateGroup"][];
            /** @description Memories that nothing has used for long, oldest first. */
            stale: components["schemas"]["StaleMemory"][];
            /** @description Memories no search has returned. */
            never_used: number;
        };
        AvailableModel: {
            /** @description What a request names as its `model`. */
            id: string;
            /**
             * @description Always `model`.
             * @constant
             */
            object: "model";
            /** @description Always 0: when it was made is not known here. */
            created: number;
            /** @description `mneme`, or `llm` for those of the endpoint. */
            owned_by: string;
        };
        AvailableModels: {
            /**
             * @description Always `list`.
             * @constant
             */
            object: "list";
            /** @description The model that is asked by default first. */
            data: components["schemas"]["AvailableModel"][];
        };
        /** @description Up to 100 memories; scope fields here hold for items that have none of their own. */
        Batch: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /** @description The memories, in order. */
            memories: components["schemas"]["RawMemory"][];
            /**
             * @description Wait up to 30 seconds for all to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
        };
        BatchCreated: {
            /** @description Items stored. */
            created: number;
            /** @description Items refused. */
            failed: number;
            /** @description The same as created. */
            accepted: number;
            /**
             * @description What was created is on disk, in one transaction.
             * @constant
             */
            durable: true;
            /** @description Ids of the memories created, in order. */
            memory_ids: string[];
            /** @description The refusals. */
            errors: components["schemas"]["IndexedError"][];
            /** @description One entry per item, in order. */
            results: components["schemas"]["BatchResult"][];
            /** @description Whether all created memories are searchable. */
            searchable: boolean;
            /**
             * @description `completed` when they are.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
            /** @description The job's path; null when nothing was created. */
            status_url: string | null;
            /** @description The event of the first memory; null when nothing was created. */
            outbox_event_id: string | null;
        };
        BatchResult: {
            /** @description The item's place in the request, from 0. */
            index: number;
            /** @description The memory's id; null when the item failed. */
            id: string | null;
            /** @description The same. */
            memory_id: string | null;
            /**
             * @description What became of the item.
             * @enum {string}
             */
            status: "created" | "failed";
            /**
             * @description `completed` when it is searchable; `failed` with the item.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
            /** @description Why it failed. */
            error?: components["schemas"]["ItemError"] | null;
        };
        BetaParameters: {
            /** @constant */
            family: "beta";
            /** @description 1 + the sum of the rewards. */
            a: number;
            /** @description 1 + what they lack to 1 each. */
            b: number;
        };
        Boosts: {
            /** @description Prefer what happened lately. */
            recency?: components["schemas"]["RecencyBoost"] | null;
            /** @description What a memory of importance 1 gains. */
            importance?: number | null;
            /** @description Tier to weight. */
            tier?: {
                [key: string]: number;
            } | null;
            /** @description Tag to weight. */
            tags?: {
                [key: string]: number;
            } | null;
            /** @description Metadata values to prefer. */
            metadata?: components["schemas"]["MetadataBoost"][] | null;
            /** @description Multipliers of the channels. */
            channels?: components["schemas"]["Channels"] | null;
        };
        Candidate: {
            /** @description Name of an action. */
            action_key: string;
            /** @description What the action does. */
            description?: string | null;
            /** @description What is known of the action; kept, not interpreted. */
            features?: {
                [key: string]: unknown;
            } | null;
            /** @description Memories that speak for it. */
            memory_ids?: string[] | null;
        };
        Change: {
            /**
             * @description The tier to change to.
             * @enum {string}
             */
            tier: "free" | "starter" | "pro" | "scale" | "enterprise";
        };
        /** @description Multipliers of the ranking's weights, 1 for each that is absent. */
        Channels: {
            /**
             * @description Meaning: vectors and late interaction.
             * @default 1
             */
            semantic?: number | null;
            /**
             * @description Words.
             * @default 1
             */
            lexical?: number | null;
            /**
             * @description Candidates of the knowledge graph: above 0 asks for them, 0 leaves them out.
             * @default 1
             */
            graph?: number | null;
            /**
             * @description Times that the query names or asks for.
             * @default 1
             */
            temporal?: number | null;
            /**
             * @description What a memory is: its speaker, its length, numbers and names in it.
             * @default 1
             */
            facet?: number | null;
        };
        /** @description OpenAI's request. What is not named here goes upstream as it is. */
        ChatBody: {
            /** @description Goes upstream; absent or `mneme`: the configured one. */
            model?: string | null;
            /** @description The conversation, as OpenAI has it. */
            messages: {
                [key: string]: unknown;
            }[];
            /**
             * @description Answer event by event.
             * @default false
             */
            stream?: boolean | null;
            /** @description Remember from this collection only, and store into it. */
            collection_id?: string | null;
            /** @description The end user; the user_id of what is remembered and stored. */
            user?: string | null;
            /** @description The session that a stored conversation belongs to. */
            session_id?: string | null;
            /**
             * @description At most so many memories.
             * @default 10
             */
            memory_limit?: number | null;
            /** @description What is put in. */
            features?: components["schemas"]["Features"] | null;
            /**
             * @description Store the user's last message and the answer, of each the first 100,000 characters. Needs the scope write.
             * @default false
             */
            store_conversation?: boolean | null;
        } & {
            [key: string]: unknown;
        };
        /** @description OpenAI's response, unchanged, and what memory had to do with it. */
        ChatReply: {
            id: string;
            /** @constant */
            object: "chat.completion";
            /** @description Unix seconds. */
            created: number;
            model: string;
            choices: components["schemas"]["Choice"][];
            /** @description Tokens, as the endpoint counted them. */
            usage?: {
                [key: string]: unknown;
            } | null;
            memory: components["schemas"]["MemoryUse"];
        } & {
            [key: string]: unknown;
        };
        Choice: {
            index: number;
            /** @description The assistant's message, tool calls included. */
            message: {
                [key: string]: unknown;
            };
            /** @description Why the model stopped. */
            finish_reason?: string | null;
        } & {
            [key: string]: unknown;
        };
        Chunk: {
            /** @description The chunk's id; the same for the same document and index. */
            id: string;
            /** @description The document it is of. */
            document_id: string;
            /** @description Its place in the document, from 0. */
            index: number;
            /** @description Its text: characters `start` to `end` of the extracted text. */
            content: string;
            /** @description Its first character in the extracted text, counted in Unicode code points. */
            start: number;
            /** @description The character after its last. */
            end: number;
            /** @description The page, slide or sheet it is on, from 1; a chunk never spans two. */
            page: number | null;
            /** @description The heading it stands under. */
            heading: string | null;
            /** @description When it begins to be said. */
            start_seconds: number | null;
            /** @description When it ends. */
            end_seconds: number | null;
            /** @description The memory that holds it; null until it is indexed, and once that was deleted. */
            memory_id: string | null;
        };
        Citation: {
            memory_id: string;
            /** @description First code point of the quotation in the memory's content. */
            start: number;
            /** @description The code point after its last. */
            end: number;
            /** @description Exactly `content[start:end]`. */
            quote: string;
        };
        Cleanup: {
            /**
             * @description Removal of derived data goes on in the background.
             * @constant
             */
            status: "queued";
            /** @description The job that does it; `GET /v1/account/receipts` says what it has removed. */
            job_id: string;
        };
        CleanupReceipt: {
            /** @description The cleanup job. */
            job_id: string;
            /** @description What is cleaned up after, such as `collections.cleanup`. */
            cause: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "queued" | "processing" | "completed" | "failed";
            /** @description When the deletion was asked for (ISO 8601). */
            created_at: string;
            /** @description When the last store was swept (ISO 8601). */
            finished_at: string | null;
            /** @description What was swept so far, by store. */
            receipts: components["schemas"]["StoreReceipt"][];
        };
        CodeGiven: {
            /** @description A code of the authenticator app, or a recovery code. */
            code: string;
        };
        Collection: {
            /** @description The collection's id. */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description What it is for. */
            description: string | null;
            /** @description Free JSON object. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Whether memories without a collection_id go here. */
            is_default: boolean;
            /** @description True: a deleted collection is not shown at all. */
            is_active: boolean;
            /** @description Memories in it, superseded ones included; what has expired for a minute more. */
            memory_count: number;
            /** @description Documents in it. */
            document_count: number;
            /** @description Counts the changes of name, description and metadata, from 1. */
            version: number;
            /** @description When it was created (ISO 8601). */
            created_at: string;
            /** @description When its name, description or metadata last changed (ISO 8601). */
            updated_at: string;
        };
        CollectionChanged: {
            /** @description The collection's id. */
            id: string;
            /** @description Its name. */
            name: string;
            /**
             * @description What changed.
             * @enum {string}
             */
            change: "created" | "metadata" | "membership";
            /** @description Its version after the change. */
            version: number;
        };
        CollectionPatch: {
            /** @description Name; it need not be unique. */
            name?: string;
            description?: string | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        Confidence: {
            /** @description Mean of the posterior, 0 to 1. */
            confidence: number;
            /**
             * @description Advice; it authorises nothing.
             * @enum {string}
             */
            recommended_action: "act" | "ask" | "review";
            /** @enum {string} */
            basis: "evidence" | "prior";
            /** @description Similar decisions with an outcome. */
            decision_count: number;
            /** @description 5 % quantile of the posterior. */
            lower_bound: number;
            /** @description What the lower bound must reach for `act`. */
            threshold: number;
            reasoning: string;
            /** @description What people have put right about this. */
            corrections: components["schemas"]["RelevantCorrection"][];
        };
        Confirmed: {
            /** @description Each is good once in place of a code. They are shown this once. */
            recovery_codes: string[];
        };
        ContextBody: {
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Search this collection only. */
            collection_id?: string | null;
            /** @description Only memories of this end user. */
            user_id?: string | null;
            /** @description Only memories of this agent. */
            agent_id?: string | null;
            /** @description Only memories of this run. */
            run_id?: string | null;
            /** @description Only memories of this application. */
            app_id?: string | null;
            /** @description Only memories of this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /** @description Search what was known at this instant (of a date without a time, at the end of that day): memories stored by then, superseded ones too when that happened later. They are searched with the content they have now. */
            as_of?: string | null;
            /** @description What yesterday, last week and the like count from; as_of or else now when absent. */
            reference_date?: string | null;
            /**
             * @description The block has at most so many tokens, as the embedding model's tokenizer counts them; those of most language models find fewer.
             * @default 1500
             */
            token_budget?: number | null;
            /**
             * @description Whether the block is a text or a JSON object.
             * @default markdown
             */
            style?: ("markdown" | "xml" | "json") | null;
        };
        ContextCitation: {
            /** @description How the block names the memory. */
            marker: string;
            memory_id: string;
            /** @description First code point of what is shown of the memory's content. */
            start: number;
            /** @description The code point after its last. */
            end: number;
        };
        ContextReply: {
            query: string;
            /** @description The block; an object in style json. Empty when nothing stored answers. */
            context: string | {
                [key: string]: unknown;
            };
            /** @description How many tokens the block is. */
            tokens: number;
            citations: components["schemas"]["ContextCitation"][];
            sections: components["schemas"]["ContextSection"][];
            /** @description Nothing stored stands as an answer. */
            no_match: boolean;
            /** @description Better not to answer from this. */
            abstain_recommended: boolean;
            abstain_reason?: string | null;
            query_confidence: number;
            grounding: components["schemas"]["Grounding"];
            /** @description The memories in the block, best first. */
            evidence_ids: string[];
            safety_contract_version: string;
            scores_calibrated: boolean;
            degraded: boolean;
            degraded_reasons: string[];
        };
        ContextSection: {
            title: string;
            /** @description What it shows, in its order. */
            memory_ids: string[];
        };
        ContradictingClaim: {
            /** @description The relationship's id. */
            relationship_id: string;
            /** @description Name of its target. */
            value: string;
            /** @description Since when (ISO 8601). */
            valid_from: string | null;
            /** @description Until when (ISO 8601). */
            valid_to: string | null;
            /** @description The memory that says so. */
            memory_id: string | null;
            /** @description That memory's words. */
            quote: string | null;
        };
        Contradiction: {
            /** @description Name of the entity both claims are about. */
            subject: string;
            /** @description Their type. */
            predicate: string;
            /** @description Both sides, the older one first. */
            claims: components["schemas"]["ContradictingClaim"][];
            /** @description When both would hold. */
            overlap: components["schemas"]["Interval"];
            /** @description Which one stands for now; null when nothing tells them apart. */
            resolution: components["schemas"]["Resolution"] | null;
        };
        Correction: {
            /** @description The correction's id. */
            id: string;
            /** @description The memory that holds the corrected content. */
            memory_id: string;
            /** @description The memory it took the place of. */
            superseded_memory_id: string | null;
            corrected_content: string;
            /** @enum {string} */
            correction_type: "preference" | "factual" | "procedural";
            original_content: string | null;
            context: string | null;
            collection_id: string;
            user_id: string | null;
            agent_id: string | null;
            confidence: number;
            metadata: {
                [key: string]: unknown;
            };
            created_at: string;
            searchable: boolean;
            /** @enum {string} */
            processing_status: "processing" | "completed" | "failed";
            status_url: string;
            outbox_event_id: string;
        };
        /** @description The memory's own fields when there is one, and the summary in any case. */
        Created: components["schemas"]["CreatedMemory"] | components["schemas"]["Summary"];
        CreatedEntity: {
            /** @description The entity's id; it never changes. */
            id: string;
            /** @description Its name, as first written. */
            name: string;
            /** @description NFKC, case-folded, white space collapsed: what names are compared by. */
            normalized_name: string;
            /** @description What it is; `unknown` when nobody said. */
            type: string;
            /** @description Further names. */
            aliases: string[];
            /** @description Free JSON object. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description Memories that mention it. */
            mention_count: number;
            /** @description When it was first spoken of (ISO 8601). */
            first_seen_at: string;
            /** @description When it was last spoken of (ISO 8601). */
            last_seen_at: string;
            /** @description The collection it belongs to. */
            collection_id: string | null;
            primary: components["schemas"]["Primary"];
            replica_delivery: components["schemas"]["ReplicaDelivery"];
        };
        /** @description One memory: its own fields and the summary. */
        CreatedMemory: {
            /** @description The memory's id. */
            id: string;
            /** @description Its text, as it was sent. */
            content: string;
            /** @description The collection written to. */
            collection_id: string;
            /** @description How much it matters, 0 to 1. */
            importance: number;
            /**
             * @description How close at hand it is kept.
             * @enum {string}
             */
            tier: "short_term" | "long_term" | "archived";
            /** @description A short name. */
            title: string | null;
            /** @description Labels. */
            tags: string[];
            /** @description Where it comes from. */
            source: string | null;
            /** @description What kind of source that is. */
            source_type: string;
            /**
             * @description What it is, by its source: what was told in a conversation, a fact that was read in it, a passage of a document, a file of an agent's memory folder, or any other text.
             * @enum {string}
             */
            kind: "episodic" | "semantic" | "document" | "file" | "note";
            /** @description A reference into the source. */
            source_reference: string | null;
            /** @description Free JSON object. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The caller's end user. */
            user_id: string | null;
            /** @description The agent that remembers. */
            agent_id: string | null;
            /** @description The run or conversation. */
            run_id: string | null;
            /** @description The application. */
            app_id: string | null;
            /** @description The session it was said in. */
            session_id: string | null;
            /** @description Who said it. */
            speaker: string | null;
            /** @description As what it was said in a chat with an assistant. */
            role: ("user" | "assistant" | "system" | "tool") | null;
            /** @description When what it tells happened (ISO 8601). */
            occurred_at: string;
            /** @description When it was stored (ISO 8601). */
            created_at: string;
            /** @description When its current version was stored (ISO 8601). */
            updated_at: string;
            /** @description Counts its versions, from 1; the ETag. */
            version: number;
            /** @description How often searches returned it, as last written down. */
            access_count: number;
            /** @description When one last did (ISO 8601). */
            last_accessed_at: string | null;
            /**
             * @description `completed` when all are searchable.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
            /** @description Whether all are searchable. */
            searchable: boolean;
            /** @description Where to ask again: the memory, or the job of several. */
            status_url: string;
            /** @description The event of the first memory; null when a repeated request made none. */
            outbox_event_id: string | null;
            /**
             * @description Whether a newer memory has taken its place.
             * @enum {string}
             */
            conflict_status: "none" | "superseded";
            /** @description That newer memory. */
            superseded_by_id: string | null;
            /** @description When it ceases to be readable (ISO 8601); null: never. */
            expires_at: string | null;
            /** @description One entry per memory, in order. */
            results: components["schemas"]["WriteResult"][];
            /** @description The same ids. */
            memory_ids: string[];
            /** @description Memories added. */
            created_count: number;
            /** @description Memories that took another's place. */
            updated_count: number;
            /** @description Texts that were known already. */
            skipped_count: number;
            /** @description This request's id. */
            request_id: string;
            /** @description The job that makes them searchable, while one is needed. */
            job_id?: string | null;
            /** @description Where that job reports. */
            poll_url?: string | null;
        };
        CreatedRelationship: {
            /** @description The relationship's id; it never changes. */
            id: string;
            /** @description The subject. */
            source: components["schemas"]["EntityName"];
            /** @description The predicate. */
            type: string;
            /** @description The object. */
            target: components["schemas"]["EntityName"];
            /** @description Free JSON object. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description How sure it is, 0 to 1. */
            confidence: number;
            /** @description Since when it holds (ISO 8601); null: always. */
            valid_from: string | null;
            /** @description Until when, exclusive (ISO 8601); null: open. */
            valid_to: string | null;
            /** @description When we learned it (ISO 8601). */
            recorded_at: string;
            /** @description When we learned that it was wrong (ISO 8601). */
            invalidated_at: string | null;
            /** @description The memory that first said so. */
            source_memory_id: string | null;
            /** @description Whether a subject has one such target at a time. */
            functional: boolean;
            /** @description Entities that were made because a name was new. */
            created_entities: components["schemas"]["EntityName"][];
            /** @description Ids of the relationships that close_previous ended. */
            closed: string[];
            primary: components["schemas"]["Primary"];
            replica_delivery: components["schemas"]["ReplicaDelivery"];
        };
        Credits: {
            /** @description Credits used or reserved since the period began. */
            used: number;
            /** @description Credits of the period; -1 is unlimited. */
            limit: number;
            /** @description Credits left; -1 is unlimited. */
            remaining: number;
            /** @description Share of the limit that is used, 0 to 100; 0 when unlimited. */
            percentage: number;
        };
        DayCounts: {
            /** @description The day (UTC). */
            date: string;
            relevance: number;
            ranking: number;
            missing: number;
        };
        Decided: {
            /** @description The decision's id. */
            decision_id: string;
            policy_key: string;
            /** @description How often the policy's evidence had changed when the choice was made. */
            policy_version: number;
            /** @enum {string} */
            mode: "auto" | "observe" | "recommend" | "explore" | "shadow";
            /** @description The action to take, or that was taken. */
            chosen_action_key: string;
            /** @description The best action by the evidence at that time. */
            recommended_action_key: string;
            baseline_action_key: string | null;
            /** @description Whether the choice came from the baseline. */
            used_baseline: boolean;
            /** @description How likely the chosen action was; null when unknown. */
            action_probability: number | null;
            /** @description Action → probability, as far as it is known; the choice was drawn from it. */
            distribution: {
                [key: string]: number;
            };
            /** @enum {string} */
            propensity_source: "server" | "client" | "unknown";
            /** @description Why, in a sentence. */
            reason: string;
            created_at: string;
            /** @description Whether this answers a repeated Idempotency-Key. */
            replayed: boolean;
            /**
             * @description Always false: evidence informs an action, it does not permit one.
             * @constant
             */
            authorizes_action: false;
        };
        DecisionEvidence: {
            /** @description The decision's id. */
            decision_id: string;
            policy_key: string;
            /** @description How often the policy's evidence had changed when the choice was made. */
            policy_version: number;
            /** @enum {string} */
            mode: "auto" | "observe" | "recommend" | "explore" | "shadow";
            /** @description The action to take, or that was taken. */
            chosen_action_key: string;
            /** @description The best action by the evidence at that time. */
            recommended_action_key: string;
            baseline_action_key: string | null;
            /** @description Whether the choice came from the baseline. */
            used_baseline: boolean;
            /** @description How likely the chosen action was; null when unknown. */
            action_probability: number | null;
            /** @description Action → probability, as far as it is known; the choice was drawn from it. */
            distribution: {
                [key: string]: number;
            };
            /** @enum {string} */
            propensity_source: "server" | "client" | "unknown";
            /** @description Why, in a sentence. */
            reason: string;
            created_at: string;
            /** @description Whether this answers a repeated Idempotency-Key. */
            replayed: boolean;
            /**
             * @description Always false: evidence informs an action, it does not permit one.
             * @constant
             */
            authorizes_action: false;
            context: {
                [key: string]: unknown;
            };
            candidates: {
                [key: string]: unknown;
            }[];
            reward_range: number[] | null;
            collection_id: string | null;
            user_id: string | null;
            /** @description Everything reported, oldest first; of each metric the latest counts. */
            outcomes: components["schemas"]["Outcome"][];
            /** @enum {string} */
            status: "pending" | "final" | "corrected";
            /** @description Null while no outcome is known: censored, which is no failure. */
            composite_reward: number | null;
            /** @description The policy's version that its latest outcome made; 0 before any. */
            evidence_revision: number;
        };
        DeletedCollection: {
            /** @description The collection's id. */
            id: string;
            /**
             * @description It and everything in it can no longer be read.
             * @constant
             */
            deleted: true;
            /** @description What is still going on. */
            cleanup: components["schemas"]["Cleanup"];
        };
        DeletedCorrection: {
            /** @description The correction's id. */
            id: string;
            /**
             * @description It and its memory can no longer be read or found.
             * @constant
             */
            deleted: true;
        };
        DeletedDocument: {
            /** @description The document's id. */
            id: string;
            /**
             * @description It and its chunks can no longer be read or found.
             * @constant
             */
            deleted: true;
        };
        DeletedOfGraph: {
            /** @description The id. */
            id: string;
            /**
             * @description It is gone, on both clocks.
             * @constant
             */
            deleted: true;
        };
        DeletedWebhook: {
            /** @description The webhook's id. */
            id: string;
            /**
             * @description It delivers nothing any more, and its deliveries are being removed.
             * @constant
             */
            deleted: true;
        };
        Delivery: {
            /** @description The delivery's id. */
            id: string;
            /** @description The webhook it goes to. */
            webhook_id: string;
            /** @description The event's id, `id` in the body that is sent. */
            event_id: string;
            /**
             * @description The kind of event.
             * @enum {string}
             */
            event_type: "memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed";
            /**
             * @description pending: not tried yet; retrying: between attempts; failed: a dead letter; skipped: the webhook was disabled.
             * @enum {string}
             */
            status: "pending" | "retrying" | "delivered" | "failed" | "skipped";
            /** @description The same in every attempt and replay; receivers deduplicate by it. */
            idempotency_key: string;
            /** @description Attempts made so far. */
            attempt_count: number;
            /** @description When the event happened (ISO 8601). */
            created_at: string;
            /** @description When the next attempt is due, between attempts. */
            next_attempt_at: string | null;
            /** @description When it was delivered, failed or skipped. */
            finished_at: string | null;
        };
        DeliveryDetail: {
            /** @description The delivery's id. */
            id: string;
            /** @description The webhook it goes to. */
            webhook_id: string;
            /** @description The event's id, `id` in the body that is sent. */
            event_id: string;
            /**
             * @description The kind of event.
             * @enum {string}
             */
            event_type: "memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed";
            /**
             * @description pending: not tried yet; retrying: between attempts; failed: a dead letter; skipped: the webhook was disabled.
             * @enum {string}
             */
            status: "pending" | "retrying" | "delivered" | "failed" | "skipped";
            /** @description The same in every attempt and replay; receivers deduplicate by it. */
            idempotency_key: string;
            /** @description Attempts made so far. */
            attempt_count: number;
            /** @description When the event happened (ISO 8601). */
            created_at: string;
            /** @description When the next attempt is due, between attempts. */
            next_attempt_at: string | null;
            /** @description When it was delivered, failed or skipped. */
            finished_at: string | null;
            /** @description Each attempt, oldest first; the last 50. */
            attempts: components["schemas"]["Attempt"][];
            /** @description The body as it is sent; null once what it tells of was deleted. */
            payload: {
                [key: string]: unknown;
            } | null;
        };
        DialecticBody: {
            /** @description What to talk about; also accepted as `message` or `question`. */
            user_message: string;
            /** @description Ours, or any string; new when absent. */
            session_id?: string | null;
            /** @description The end user talked about. */
            user_id?: string | null;
            /**
             * @description How many memories are read and how much is thought about them.
             * @default low
             */
            reasoning_level?: ("minimal" | "low" | "medium" | "high") | null;
        };
        DialecticReply: {
            session_id: string;
            assistant_message: string;
            /** @enum {string} */
            engine: "llm" | "extractive";
            /** @description Memories the message rests on. */
            evidence_memory_ids: string[];
            /** @description Guesses about the user so far, most confident first. */
            hypotheses: components["schemas"]["HypothesisView"][];
            /** @description What would be worth asking the user, if anything. */
            follow_up_question: string | null;
            /** @description Nothing stored supports an answer. */
            abstain_recommended: boolean;
            /** @description Whether the language model or a channel of the search was missing. */
            degraded: boolean;
        };
        Document: {
            /** @description The document's id. */
            id: string;
            /** @description The name it was sent under. */
            filename: string;
            /** @description The title given, or the one the file gives itself. */
            title: string | null;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description What it is, by its content. */
            media_type: string;
            /** @description Length of the file. */
            size_bytes: number;
            /** @description Hex digest of the file. */
            sha256: string;
            /**
             * @description `completed`: every chunk of it is searchable, or there was nothing to be said.
             * @enum {string}
             */
            status: "pending" | "processing" | "completed" | "failed";
            /**
             * @description The same.
             * @enum {string}
             */
            processing_status: "pending" | "processing" | "completed" | "failed";
            /** @description Why it failed. */
            error: components["schemas"]["DocumentError"] | null;
            /** @description Pages, slides or sheets, where the format has them. */
            page_count: number | null;
            /** @description Chunks it was cut into. */
            chunk_count: number;
            /** @description Length of a recording or of subtitles. */
            duration_seconds: number | null;
            /** @description What came of it; null until it is completed. */
            result: components["schemas"]["DocumentResult"] | null;
            /** @description Labels. */
            tags: string[];
            /** @description Free JSON object. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Counts the changes of its state, from 1. */
            version: number;
            /** @description When it was uploaded (ISO 8601). */
            created_at: string;
            /** @description When its state last changed (ISO 8601). */
            updated_at: string;
            /** @description When its file was removed, because it could not be read (ISO 8601); null: it is kept. */
            file_removed_at: string | null;
        };
        /** @description What the events document.* say. */
        DocumentChanged: {
            /** @description The document's id. */
            id: string;
            /** @description Its version after the change. */
            version: number;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description The name it was sent under. */
            filename: string;
            /** @description Its state; `deleted` when it was deleted. */
            status: string;
            /** @description Chunks it was cut into. */
            chunk_count: number;
            /** @description Why it failed. */
            error?: components["schemas"]["DocumentError"] | null;
        };
        /**
         * Format: binary
         * @description The file as it was uploaded.
         */
        DocumentContent: string;
        DocumentError: {
            /** @description A word for programs, such as `encrypted`, `damaged`, `no_text`, `transcription_unavailable`. */
            reason: string;
            /** @description A sentence for people. */
            message: string;
        };
        DocumentResult: {
            /**
             * @description What processing made of it.
             * @enum {string}
             */
            kind: "text" | "transcript" | "no_speech_detected";
            /** @description The language of a transcript, where it is known. */
            language: string | null;
        };
        /** @description The extracted text, in UTF-8. */
        DocumentText: string;
        Doomed: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /** @description Only this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT, as in a search; at least one that does not hold for every memory. */
            filters: {
                [key: string]: unknown;
            };
        };
        DuplicateGroup: {
            /** @description The one to keep: the oldest. */
            keep: string;
            /** @description The others. */
            duplicates: string[];
            /** @description Text of the one to keep. */
            content: string;
            /** @description Least cosine between the one to keep and another. */
            similarity: number;
        };
        Entity: {
            /** @description The entity's id; it never changes. */
            id: string;
            /** @description Its name, as first written. */
            name: string;
            /** @description NFKC, case-folded, white space collapsed: what names are compared by. */
            normalized_name: string;
            /** @description What it is; `unknown` when nobody said. */
            type: string;
            /** @description Further names. */
            aliases: string[];
            /** @description Free JSON object. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description Memories that mention it. */
            mention_count: number;
            /** @description When it was first spoken of (ISO 8601). */
            first_seen_at: string;
            /** @description When it was last spoken of (ISO 8601). */
            last_seen_at: string;
            /** @description The collection it belongs to. */
            collection_id: string | null;
        };
        EntityDetails: {
            entity: components["schemas"]["Entity"];
            /** @description Its standing relationships, newest first. */
            relationships: components["schemas"]["Relationship"][];
            /** @description Memories that mention it, newest first. */
            source_memories: components["schemas"]["SourceMemory"][];
        };
        EntityMerge: {
            /** @description The entity that stays, by name, alias or id. */
            into: string;
        };
        EntityName: {
            /** @description The entity's id. */
            id: string;
            /** @description Its name. */
            name: string;
        };
        Erased: {
            /**
             * @description Nobody can log in or read anything from now on.
             * @constant
             */
            deleted: true;
            /** @description Opens the receipts of the erasure, at POST /v1/account/receipts. It is shown this once. */
            receipt: string;
            /**
             * @description The stores are swept in the background.
             * @constant
             */
            status: "queued";
        };
        Erasure: {
            /**
             * @description `completed` when every store was swept and the key is gone.
             * @enum {string}
             */
            status: "processing" | "completed";
            /** @description When the account was deleted (ISO 8601). */
            requested_at: string;
            /** @description When the last store was swept (ISO 8601). */
            finished_at: string | null;
            /** @description One entry for each store. */
            receipts: components["schemas"]["StoreReceipt"][];
        };
        Error: {
            error: {
                /**
                 * @description Absent where none fits.
                 * @enum {string}
                 */
                code?: "invalid_api_key" | "missing_api_key" | "invalid_request" | "validation_error" | "resource_not_found" | "collection_not_found" | "rate_limit_exceeded" | "quota_exceeded" | "document_too_large" | "unsupported_format" | "permission_denied" | "feature_not_available" | "internal_error";
                /** @description What happened and what to do about it. */
                message: string;
                /** @description Category of the error. */
                type: string;
                /** @description The offending parameter. */
                param: string | null;
                /** @description The HTTP status. */
                status_code: number;
                /** @description The HTTP status; in 429 only. */
                status?: number;
                /** @description The value of X-Request-ID. */
                request_id: string;
                /** @description In 422 only: one entry per finding. */
                details?: {
                    /** @description `body` or `query`, then the way. */
                    loc: (string | number)[];
                    /** @description What is wrong there. */
                    msg: string;
                    /** @description Kind of finding. */
                    type: string;
                }[];
            };
        };
        Estimators: {
            ips: number | null;
            clipped_ips: number | null;
            snips: number | null;
            /** @description Doubly robust, cross-fitted. */
            dr: number | null;
        };
        Evaluate: {
            /**
             * @description Always this action; or what the evidence before each decision recommended for it.
             * @default recommended
             */
            target?: "recommended" | components["schemas"]["TargetAction"] | null;
            /** @description Always this action; the policy as logged when absent. */
            baseline?: components["schemas"]["TargetAction"] | string | null;
            /**
             * @description By how much the target must be better.
             * @default 0
             */
            margin?: number | null;
            /**
             * @description Chance of a false `sufficient`, however often it is asked.
             * @default 0.05
             */
            alpha?: number | null;
            /** @description What must not get worse. */
            guardrails?: components["schemas"]["Guardrail"][] | null;
            /** @description Only decisions of this end user. */
            user_id?: string | null;
            /** @description Only decisions of this collection. */
            collection_id?: string | null;
            /**
             * @description Newest decisions looked at.
             * @default 5000
             */
            limit?: number | null;
        };
        Evaluation: {
            /** @enum {string} */
            verdict: "sufficient" | "insufficient" | "harmful" | "invalid";
            /** @description Of the target's mean reward minus the baseline's, valid however often it is asked. */
            lower_bound: number;
            upper_bound: number;
            estimate: number | null;
            /** @description Decisions with an outcome that were looked at. */
            n: number;
            effective_sample_size: number;
            guardrails: components["schemas"]["GuardrailVerdict"][];
            /** @description What stands behind the verdict, in sentences. */
            reasons: string[];
            /**
             * @description Always false: evidence informs an action, it does not permit one.
             * @constant
             */
            authorizes_action: false;
        };
        EvidenceSpan: {
            /** @description Index of the message, from 0; 0 for a content. */
            source: number;
            /** @description First code point of the quotation. */
            start: number;
            /** @description The code point after its last. */
            end: number;
            /** @description The words, verbatim. */
            quote: string;
        };
        FacetCount: {
            /** @description A value of the field. */
            value: string | boolean | number | null;
            /** @description Results that carry it. */
            count: number;
        };
        Fact: {
            id: string;
            key: string;
            value: string;
            /** @description 1 for what was set; for what was derived it grows with the memories that say it. */
            confidence: number;
            /** @description Memories that say it, latest first; empty for what was set. */
            evidence_memory_ids: string[];
            /** @description When it was last said (ISO 8601). */
            observed_at: string;
        };
        FeatureNotAvailable: {
            /** @constant */
            error: "feature_not_available";
            /** @description Key of the feature. */
            feature: string;
            /** @description Name of the feature. */
            feature_name: string;
            /** @description What the tier lacks. */
            message: string;
            current_tier: {
                /** @description Key. */
                name: string;
                /** @description Name. */
                display_name: string;
            };
            required_tier: {
                /** @description Key. */
                name: string;
                /** @description Name. */
                display_name: string;
                /** @description Price. */
                price?: string;
                /** @description Credits per month. */
                credits?: string;
            };
            /**
             * Format: uri
             * @description Where to upgrade.
             */
            upgrade_url: string;
            /**
             * Format: uri
             * @description Where the tiers are described.
             */
            pricing_url: string;
        };
        Features: {
            /**
             * @description Put in what memory knows about the last message.
             * @default true
             */
            memory?: boolean | null;
            /**
             * @description Put in the profile of `user`.
             * @default true
             */
            profile?: boolean | null;
            /**
             * @description Put in corrections that concern the last message.
             * @default true
             */
            learning?: boolean | null;
        };
        FeedbackReceived: {
            /** @description The feedback's id. */
            id: string;
            /** @description The same id. */
            feedback_id: string;
            /** @enum {string} */
            kind: "relevance" | "ranking" | "missing";
            /** @description The memory it is about. */
            memory_id?: string | null;
        };
        GraphAnswer: {
            /** @description The ends of the relationships, and the entity asked for. */
            entities: components["schemas"]["Entity"][];
            /** @description Nearest first. */
            relationships: components["schemas"]["Relationship"][];
            /** @description The instant that was asked about (ISO 8601). */
            valid_at: string;
            /** @description As of which knowledge (ISO 8601). */
            known_at: string;
        };
        GraphQuery: {
            /** @description Where to start; all relationships that match when absent. */
            entity?: string | null;
            /** @description Only relationships of this type. */
            relation_type?: string | null;
            /** @description Only relationships on a way to this entity. */
            target?: string | null;
            /**
             * @description How many hops from the entity.
             * @default 1
             */
            depth?: number | null;
            /** @description What held then (of a date without a time, at the end of that day); now when absent. */
            valid_at?: string | null;
            /** @description Another name for valid_at. */
            timestamp?: string | null;
            /** @description As it was known then (of a date without a time, at the end of that day); now when absent. */
            known_at?: string | null;
            /** @description What held at some time in [from, to), instead of valid_at. */
            between?: string[] | null;
            /**
             * @description At most so many.
             * @default 50
             */
            limit?: number | null;
        };
        /** @description A search by the graph, and which memories may answer it. */
        GraphSearch: {
            /** @description What to look for; the entities it names lead. */
            query?: string | null;
            /** @description Where to start, instead of what the query names, or beside it. */
            entity?: string | null;
            /**
             * @description How many hops from the entity.
             * @default 2
             */
            depth?: number | null;
            /**
             * @description At most so many results.
             * @default 10
             */
            limit?: number | null;
            /** @description Follow what held then (of a date without a time, at the end of that day); now when absent. */
            as_of?: string | null;
            /** @description Search this collection only. */
            collection_id?: string | null;
            /** @description Only memories of this end user. */
            user_id?: string | null;
            /** @description Only memories of this agent. */
            agent_id?: string | null;
            /** @description Only memories of this run. */
            run_id?: string | null;
            /** @description Only memories of this application. */
            app_id?: string | null;
            /** @description Only memories of this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT. */
            filters?: {
                [key: string]: unknown;
            } | null;
        };
        GraphSearchReply: {
            query: string;
            results: components["schemas"]["Hit"][];
            /** @description How many memories passed the threshold, before offset and limit, of those that were looked at: each channel proposes `search.candidates`, or as many as offset and limit ask for where that is more, 1,000 at most. */
            total: number;
            search_type: string;
            processing_time_ms: number;
            /** @description Nothing stored stands as an answer; there are no results then. */
            no_match: boolean;
            /** @description Better not to answer from these results. */
            abstain_recommended: boolean;
            /** @description Why. subject_conflict: what the query asks of one speaker fits another one better. */
            abstain_reason?: ("no_match" | "weak_evidence" | "subject_conflict") | null;
            /** @description 0 to 1; how likely the results hold an answer. It ranks queries; it is no probability. */
            query_confidence: number;
            grounding: components["schemas"]["Grounding"];
            evidence_ids: string[];
            safety_contract_version: string;
            /** @description Always false: scores rank, they are no probabilities. */
            scores_calibrated: boolean;
            /** @description With `explain`: the section of the settings whose weights were used. */
            ranking_profile?: ("ranking" | "ranking_notes" | "ranking_fast") | null;
            reranker_applied: boolean;
            /** @description Whether a channel was missing; degraded_reasons says which. */
            degraded: boolean;
            degraded_reasons: string[];
            query_entities: string[];
            /** @description The entities met, those asked for first. */
            entities: components["schemas"]["Entity"][];
            /** @description The claims followed, nearest first. */
            relationships: components["schemas"]["Relationship"][];
            /** @description How each result was reached. */
            paths: components["schemas"]["Path"][];
        };
        GraphStats: {
            entities: number;
            /** @description Claims that stand; those we took back are not counted. */
            relationships: number;
            entities_by_type: {
                [key: string]: number;
            };
            relationships_by_type: {
                [key: string]: number;
            };
            contradictions: number;
            /** @description Relationships per entity, both ends counted. */
            average_degree: number;
            max_degree: number;
            /** @description Groups of entities that are joined to each other. */
            components: number;
            /** @description When the graph last changed (ISO 8601). */
            updated_at: string | null;
        };
        Grounding: {
            /** @enum {string} */
            status: "grounded" | "weak" | "no_grounded_match";
            reason: string;
            /** @description Speakers the query names. */
            subject_anchors: string[];
        };
        Guardrail: {
            /** @description Name of a metric. */
            metric_key: string;
            /**
             * @description How much worse it may get.
             * @default 0
             */
            margin?: number | null;
            /**
             * @description Which way is better.
             * @default higher_is_better
             */
            direction?: ("higher_is_better" | "lower_is_better") | null;
        };
        GuardrailVerdict: {
            metric_key: string;
            /** @description Shown not to be worse than the margin allows. */
            passed: boolean;
            lower_bound: number;
            upper_bound: number;
            estimate: number | null;
            n: number;
        };
        Health: {
            /** @description `ok`, `degraded` (was ready, a shard is missing now; with 200: the object store takes nothing, or a disk has no room) or `starting`. */
            status: string;
            version: string;
            build: string;
            shards: components["schemas"]["ShardCount"];
            /** @description Name of a check -> `ok`, or what is wrong. */
            checks: {
                [key: string]: string;
            };
        };
        Highlight: {
            /** @description First code point of a matching word in `content`. */
            start: number;
            /** @description The code point after its last. */
            end: number;
        };
        HistoryItem: {
            /** @description First instant of the hour, day or month (ISO 8601, UTC). */
            period_start: string;
            requests: number;
            credits: number;
        };
        Hit: {
            /** @description The memory's id. */
            id: string;
            /** @description The same id. */
            memory_id: string;
            content: string;
            /** @description Weighted sum of the ranking features; a ranking signal, not a probability. */
            score: number;
            /** @description The score as a share of the best reachable, 0 to 1. */
            normalized_score: number;
            /** @description From 1 (from offset + 1 with an offset). */
            rank: number;
            collection_id: string;
            metadata?: {
                [key: string]: unknown;
            } | null;
            tags?: string[] | null;
            speaker: string | null;
            session_id: string | null;
            user_id: string | null;
            agent_id: string | null;
            run_id: string | null;
            app_id: string | null;
            occurred_at: string;
            created_at: string;
            updated_at: string;
            tier: string;
            /** @description Whether the result is too weak to stand on its own. */
            low_confidence: boolean;
            highlights?: components["schemas"]["Highlight"][] | null;
            /** @description Contribution of each feature, with `explain`. */
            explanation?: {
                [key: string]: number;
            } | null;
            /** @description Facts that are no results of their own beside the turn that they rest on. */
            evidence?: components["schemas"]["HitEvidence"][] | null;
            /** @description Where the content says what has been superseded since; the rest of it stands. */
            outdated?: components["schemas"]["Outdated"][] | null;
        };
        HitEvidence: {
            /** @description The turn, which is the result. */
            memory_id: string;
            /** @description First code point of what the fact was read in. */
            start: number;
            /** @description The code point after its last. */
            end: number;
            /** @description The memory of the fact. */
            fact_id: string;
        };
        Hop: {
            /** @description The claim that was followed. */
            relationship_id: string;
            /** @description Name of its subject. */
            source: string;
            /** @description Its predicate. */
            type: string;
            /** @description Name of its object. */
            target: string;
        };
        HourLatency: {
            /** @description Requests that were let in. */
            requests: number;
            /** @description Of these, those answered with 4xx. */
            client_errors: number;
            /** @description Of these, those answered with 5xx, or not at all. */
            server_errors: number;
            /** @description Share of both among the requests, 0 to 1. */
            error_share: number;
            /** @description Mean milliseconds. */
            mean_ms: number;
            /** @description Half were answered within so many milliseconds. */
            p50_ms: number;
            /** @description 95 of 100 were answered within so many milliseconds. */
            p95_ms: number;
            /** @description 99 of 100 were answered within so many milliseconds. */
            p99_ms: number;
            /** @description First instant of the hour (ISO 8601, UTC). */
            period_start: string;
        };
        HypothesisView: {
            statement: string;
            /** @description 0 to 1. */
            confidence: number;
            evidence_memory_ids: string[];
        };
        Import: {
            /** @description Lines of an export, in order. */
            records: components["schemas"]["SentRecord"][];
        };
        ImportPart: {
            /** @description Records, in the export's order. */
            records: components["schemas"]["SentRecord"][];
            /**
             * @description The place of the first one in the whole import, which errors name.
             * @default 0
             */
            first?: number | null;
            /** @description Where the records are a block of an export of this account: its signature, of the manifest's `blocks`. They are taken at their word. */
            signature?: string | null;
        };
        ImportSummary: {
            /** @description Lines that were sent. */
            lines: number;
            /** @description Memories stored. */
            created: number;
            /** @description Lines that are no memory, or cannot be one. */
            failed: number;
            /** @description Why it stopped before the end: lines without an outcome are to be sent again, with all others and the same key. null when every line has one. */
            error: components["schemas"]["ItemError"] | null;
        };
        Imported: {
            /** @description Records taken in, by kind. */
            created: {
                [key: string]: number;
            };
            /** @description Records that were here already, by kind. */
            known: {
                [key: string]: number;
            };
            /** @description Records of kinds that are not taken in, by kind. */
            skipped: {
                [key: string]: number;
            };
            /** @description Whether this installation has signed it as an export of this account, and nobody has changed it since. */
            verified: boolean;
        };
        ImportedLines: {
            /** @description The memories, each as in `POST /v1/memories/raw`. */
            memories: {
                [key: string]: unknown;
            }[];
        };
        IndexedError: {
            /** @description An error code of the API. */
            code: string;
            /** @description What is wrong with the item. */
            message: string;
            /** @description The item's place in the request, from 0. */
            index: number;
        };
        Ingestion: {
            /** @description The job's id. */
            job_id: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "queued" | "processing" | "completed" | "failed";
            /** @description Where to ask again. */
            status_url: string;
            /** @description The same. */
            poll_url: string;
            /** @description 0 to 1; in the answer to a request that waited. */
            progress?: number | null;
            /** @description When it was accepted (ISO 8601). */
            created_at?: string | null;
            /** @description When it began (ISO 8601). */
            started_at?: string | null;
            /** @description When it ended (ISO 8601). */
            finished_at?: string | null;
            /** @description Attempts so far. */
            attempts?: number | null;
            /** @description What it did. */
            result?: components["schemas"]["IngestionResult"] | null;
            /** @description Why it failed. */
            error?: string | null;
        };
        IngestionEvent: {
            /**
             * @description What became of the statement.
             * @enum {string}
             */
            event: "ADD" | "UPDATE" | "DELETE" | "NOOP";
            /** @description The memory that holds it; null in a dry run. */
            memory_id: string | null;
            /** @description The text. */
            memory: string;
            /** @description UPDATE, DELETE: the text that it supersedes. */
            previous_content?: string | null;
            /** @description UPDATE, DELETE: the memory that it supersedes. */
            previous_memory_id?: string | null;
            /** @description NOOP: where its words are kept, superseded by `memory_id`; restoring that undoes the merge. */
            merged_memory_id?: string | null;
            /** @description Where it was said. */
            evidence: components["schemas"]["EvidenceSpan"][];
            /** @description Why. */
            reason: string;
        };
        IngestionResult: {
            /** @description Claims found. */
            facts_extracted: number;
            /** @description Memories stored, those of UPDATE and DELETE included. */
            memories_created: number;
            /** @description Memories superseded by another claim. */
            memories_updated: number;
            /** @description Memories superseded because they hold no more. */
            memories_invalidated: number;
            /** @description Statements that were known. */
            skipped: number;
            /** @description One per statement, in order. */
            events: components["schemas"]["IngestionEvent"][];
            /** @description What became of the sentences. */
            statements?: components["schemas"]["StatementCounts"] | null;
            /** @description Entities spoken of. */
            entities: number;
            /** @description Claims stored in the graph. */
            relationships: number;
            /**
             * @description Who found the facts.
             * @enum {string}
             */
            engine: "rules" | "llm";
            /** @description What went wrong on the way; absent when nothing did. */
            degraded?: string[] | null;
        };
        Insights: {
            policy_key: string;
            policy_version: number;
            /** @description Actions known; those taken most often are shown. */
            action_count: number;
            actions: components["schemas"]["ActionInsight"][];
            /** @description Least effective sample size of an action shown, as a share of the decisions that could take it. */
            overlap: number;
            /** @description Largest 1 / propensity seen. */
            max_weight: number;
            /** @description Share of the decisions without outcome. */
            missingness: number;
            /** @description Mean reward if all missing outcomes were the worst, or the best. */
            worst_case_bounds: components["schemas"]["WorstCase"];
        };
        Interval: {
            /** @description Its beginning (ISO 8601); null: open. */
            from: string | null;
            /** @description Its end, exclusive (ISO 8601); null: open. */
            to: string | null;
        };
        InvitationAsked: {
            /**
             * @description A mail is on its way to the address, if it can be.
             * @constant
             */
            status: "accepted";
        };
        InvitationRequest: {
            /**
             * Format: email
             * @description E-mail address; white space around it and letter case do not count.
             */
            email: string;
        };
        Invoice: {
            /** @description The document's id. */
            id: string;
            /** @description Its number; numbers have no gaps. */
            number: string;
            /**
             * @description A credit note takes back what an invoice charged; its amounts are negative.
             * @enum {string}
             */
            kind: "invoice" | "credit_note";
            /**
             * @description Of an invoice: open, paid, or void when credit notes took all of it back. Of a credit note: issued.
             * @enum {string}
             */
            status: "open" | "paid" | "void" | "issued";
            /** @description ISO 4217 code. */
            currency: string;
            /** @description Name and e-mail address of the account when it was issued. */
            billed_to: {
                [key: string]: string;
            };
            lines: components["schemas"]["Line"][];
            /** @description Sum of the lines. */
            subtotal_cents: number;
            /** @description What it charges; no tax is added. */
            total_cents: number;
            /** @description What credit notes took back of it. */
            credited_cents: number;
            /** @description First instant of the period it closes or changes (ISO 8601). */
            period_start: string;
            /** @description First instant after it. */
            period_end: string;
            /** @description When it was issued. */
            issued_at: string;
            /** @description When it was paid; null: not yet. */
            paid_at: string | null;
            /** @description Of a credit note: the invoice it corrects. */
            credited_invoice_id: string | null;
            /** @description The same as a page to print. */
            html_url: string;
            /** @description Where to pay it, when a payment provider collects it. */
            payment_url: string | null;
        };
        /** @description An HTML document. */
        InvoiceHtml: string;
        ItemError: {
            /** @description An error code of the API. */
            code: string;
            /** @description What is wrong with the item. */
            message: string;
        };
        JobView: {
            /** @description The job's id. */
            job_id: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "queued" | "processing" | "completed" | "failed";
            /** @description 0 to 1. */
            progress: number;
            /** @description When it was accepted (ISO 8601). */
            created_at: string;
            /** @description When its first attempt began (ISO 8601). */
            started_at: string | null;
            /** @description When it ended (ISO 8601). */
            finished_at: string | null;
            /** @description Attempts so far. */
            attempts: number;
            /** @description What it did; for an indexing job the counts `indexed` and `skipped`. */
            result: {
                [key: string]: unknown;
            } | null;
            /** @description Why it failed, or why the last attempt did. */
            error: string | null;
        };
        KeyShare: {
            /** @description The API key; null: access tokens, and work in the background. */
            api_key_id: string | null;
            /** @description Requests made with it. */
            requests: number;
            /** @description Credits they cost. */
            credits: number;
        };
        KeyUsage: {
            /** @description Requests made with the key. */
            requests: number;
            /** @description Credits they cost. */
            credits: number;
        };
        Latencies: {
            /** @description First instant of the first hour (ISO 8601, UTC). */
            since: string;
            /** @description Of all operations. */
            total: components["schemas"]["Latency"];
            /** @description By operation, the most asked first. */
            by_operation: components["schemas"]["OperationLatency"][];
            /** @description By hour, oldest first; those with requests. */
            by_hour: components["schemas"]["HourLatency"][];
        };
        Latency: {
            /** @description Requests that were let in. */
            requests: number;
            /** @description Of these, those answered with 4xx. */
            client_errors: number;
            /** @description Of these, those answered with 5xx, or not at all. */
            server_errors: number;
            /** @description Share of both among the requests, 0 to 1. */
            error_share: number;
            /** @description Mean milliseconds. */
            mean_ms: number;
            /** @description Half were answered within so many milliseconds. */
            p50_ms: number;
            /** @description 95 of 100 were answered within so many milliseconds. */
            p95_ms: number;
            /** @description 99 of 100 were answered within so many milliseconds. */
            p99_ms: number;
        };
        /** @description Sentences that no memory holds, by reason. */
        LeftOut: {
            /** @description They greet, or part. */
            greeting: number;
            /** @description They agree, thank or decline. */
            acknowledgement: number;
            /** @description They only react to what was said. */
            reaction: number;
            /** @description They ask, and tell nothing. */
            question: number;
            /** @description Their turn was known. */
            duplicate: number;
            /** @description They say nothing else to be kept. */
            other: number;
        };
        Line: {
            /** @description What is charged. */
            description: string;
            /** @description How much of it: credits, thousands of credits where one costs a fraction of a cent, or months (a share of one, when prorated). */
            quantity: number;
            /** @description Price of one, in cents. */
            unit_cents: number;
            /** @description Quantity times price, rounded once. */
            amount_cents: number;
            /** @description First instant of the time it is for (ISO 8601). */
            period_start: string;
            /** @description First instant after it. */
            period_end: string;
        };
        /** @description A line of the answer: what became of a line, or, as the last one, the summary. */
        LineOutcome: {
            /** @description The line's number, from 1; empty lines are not counted. */
            line?: number | null;
            /** @description `created` or `failed`. */
            status?: string | null;
            /** @description The memory's id; null when it failed. */
            id?: string | null;
            /** @description `completed` when it is searchable. */
            processing_status?: ("processing" | "completed" | "failed") | null;
            /** @description Why it failed. */
            error?: components["schemas"]["ItemError"] | null;
            /** @description On the last line alone. */
            summary?: components["schemas"]["ImportSummary"] | null;
        };
        ListedApiKey: {
            /** @description The key's id; delete it under this. */
            id: string;
            /** @description What the key is for. */
            name: string;
            /** @description The first characters of the key, to recognise it by. */
            prefix: string;
            /** @description What the key may do. */
            scopes: ("read" | "write" | "admin")[];
            /** @description When it was minted (ISO 8601). */
            created_at: string;
            /** @description When it stops working; null: never. */
            expires_at: string | null;
            /** @description When it was last used (ISO 8601); null: never. */
            last_used_at: string | null;
            /** @description What it was used for. */
            usage: components["schemas"]["KeyUsage"];
        };
        ListedSession: {
            /** @description The session's id; end it under this. */
            id: string;
            /** @description The User-Agent that it was begun with. */
            agent: string;
            /** @description Where its last request came from. */
            address: string;
            /** @description When it was begun (ISO 8601). */
            created_at: string;
            /** @description When its last request came (ISO 8601). */
            last_seen_at: string;
            /** @description When it ends by itself (ISO 8601). */
            expires_at: string;
            /** @description Whether it is the one that asks. */
            current: boolean;
        };
        /** @description Figures of the last one or two minutes. */
        Load: {
            /** @description Of how many seconds, up to now, the figures are. */
            seconds: number;
            requests: number;
            /** @description Cores of the shard that worked for the account, on average: the three below, by the time. */
            cores: number;
            /** @description Time of threads for searches and wide reads. */
            read_ms: number;
            /** @description Time of the shard's writer, without commits. */
            write_ms: number;
            /** @description Time of threads for jobs, and for what is taken apart or loaded. */
            other_ms: number;
            /** @description Time that its requests waited for turns, all together. */
            waited_ms: number;
            /** @description Characters that the embedding model was given. */
            embedded_chars: number;
            /** @description What of the account is in the shard's memory. */
            resident_bytes: number;
        };
        LoggedDecision: {
            id: string;
            decision_type: string;
            description: string;
            outcome: ("success" | "failure" | "partial") | null;
            context: {
                [key: string]: unknown;
            };
            collection_id: string | null;
            created_at: string;
        };
        Login: {
            /**
             * Format: email
             * @description E-mail address; white space around it and letter case do not count.
             */
            email: string;
            /** @description The password. */
            password: string;
            /** @description Needed where the account has a second factor. */
            code?: string | null;
        };
        MemoriesFound: {
            /** @description Newest first. */
            items: components["schemas"]["Memory"][];
            /** @description How many memories match. */
            total_count: number;
        };
        MemoriesQuery: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /** @description Only this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT, as in a search. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Include memories that newer ones have superseded.
             * @default false
             */
            include_superseded?: boolean | null;
            /**
             * @description At most so many memories.
             * @default 50
             */
            limit?: number | null;
            /**
             * @description Skip so many.
             * @default 0
             */
            offset?: number | null;
        };
        Memory: {
            /** @description The memory's id. */
            id: string;
            /** @description Its text, as it was sent. */
            content: string;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description How much it matters, 0 to 1. */
            importance: number;
            /**
             * @description How close at hand it is kept.
             * @enum {string}
             */
            tier: "short_term" | "long_term" | "archived";
            /** @description A short name. */
            title: string | null;
            /** @description Labels. */
            tags: string[];
            /** @description Where it comes from. */
            source: string | null;
            /** @description What kind of source that is. */
            source_type: string;
            /**
             * @description What it is, by its source: what was told in a conversation, a fact that was read in it, a passage of a document, a file of an agent's memory folder, or any other text.
             * @enum {string}
             */
            kind: "episodic" | "semantic" | "document" | "file" | "note";
            /** @description A reference into the source. */
            source_reference: string | null;
            /** @description Free JSON object. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The caller's end user. */
            user_id: string | null;
            /** @description The agent that remembers. */
            agent_id: string | null;
            /** @description The run or conversation. */
            run_id: string | null;
            /** @description The application. */
            app_id: string | null;
            /** @description The session it was said in. */
            session_id: string | null;
            /** @description Who said it. */
            speaker: string | null;
            /** @description As what it was said in a chat with an assistant. */
            role: ("user" | "assistant" | "system" | "tool") | null;
            /** @description When what it tells happened (ISO 8601). */
            occurred_at: string;
            /** @description When it was stored (ISO 8601). */
            created_at: string;
            /** @description When its current version was stored (ISO 8601). */
            updated_at: string;
            /** @description Counts its versions, from 1; the ETag. */
            version: number;
            /** @description How often searches returned it, as last written down. */
            access_count: number;
            /** @description When one last did (ISO 8601). */
            last_accessed_at: string | null;
            /**
             * @description `completed` exactly when it is searchable.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
            /** @description Whether searches find it. */
            searchable: boolean;
            /** @description Where to ask again. */
            status_url: string;
            /** @description The event of its current version. */
            outbox_event_id: string;
            /**
             * @description Whether a newer memory has taken its place.
             * @enum {string}
             */
            conflict_status: "none" | "superseded";
            /** @description That newer memory. */
            superseded_by_id: string | null;
            /** @description When it ceases to be readable (ISO 8601); null: never. */
            expires_at: string | null;
        };
        /** @description One command on the tree of files that user_id, agent_id and collection_id name. */
        MemoryCommand: {
            /**
             * @description What to do.
             * @enum {string}
             */
            command: "view" | "create" | "str_replace" | "insert" | "delete" | "rename";
            /** @description A file or directory, from `/memories` on. All commands but `rename` need it. */
            path?: string | null;
            /** @description `view`: first and last line to show, from 1; -1 is the file's end. */
            view_range?: number[] | null;
            /** @description `create`: the new file's text. */
            file_text?: string | null;
            /** @description `str_replace`: occurs exactly once. */
            old_str?: string | null;
            /**
             * @description `str_replace`: stands in its place.
             * @default
             */
            new_str?: string | null;
            /** @description `insert`: the line to insert after; 0 is the file's beginning. */
            insert_line?: number | null;
            /** @description `insert`: the lines to insert. */
            insert_text?: string | null;
            /** @description `rename`: what to move, with everything in it. */
            old_path?: string | null;
            /** @description `rename`: where to; there must be nothing yet. */
            new_path?: string | null;
            /** @description The collection the tree is in; the default one when absent. */
            collection_id?: string | null;
            /** @description The tree of this end user. */
            user_id?: string | null;
            /** @description The tree of this agent. */
            agent_id?: string | null;
            /**
             * @description Wait up to 30 seconds for a changed file to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
        } & ({
            /** @constant */
            command?: "view";
        } | {
            /** @constant */
            command?: "create";
        } | {
            /** @constant */
            command?: "str_replace";
        } | {
            /** @constant */
            command?: "insert";
        } | {
            /** @constant */
            command?: "delete";
        } | {
            /** @constant */
            command?: "rename";
        });
        MemoryCreated: {
            /** @description The memory's id. */
            id: string;
            /** @description Its version, from 1. */
            version: number;
            /** @description Its text; empty once the memory has been deleted. */
            content: string;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description 0 to 1. */
            importance: number;
            /** @description When it was stored (ISO 8601). */
            created_at: string;
        };
        MemoryDeleted: {
            /** @description The memory's id. */
            id: string;
            /** @description One above its last version. */
            version: number;
            /** @description The collection it belonged to. */
            collection_id: string;
            /** @description When it ceased to be readable (ISO 8601). */
            deleted_at: string;
        };
        MemoryJob: {
            /** @description The job's id. */
            job_id: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "queued" | "processing" | "completed" | "failed";
            /** @description 0 to 1. */
            progress: number;
            /** @description When it was accepted (ISO 8601). */
            created_at: string;
            /** @description When its first attempt began (ISO 8601). */
            started_at: string | null;
            /** @description When it ended (ISO 8601). */
            finished_at: string | null;
            /** @description Attempts so far. */
            attempts: number;
            /** @description What it did; for an indexing job the counts `indexed` and `skipped`. */
            result: {
                [key: string]: unknown;
            } | null;
            /** @description Why it failed, or why the last attempt did. */
            error: string | null;
            /**
             * @description What it does.
             * @enum {string}
             */
            kind: "memories.index" | "memories.process" | "documents.process";
        };
        MemoryOutput: {
            /** @description What to tell the agent. */
            output: string;
            /** @description The file or directory, where it is now. */
            path: string;
            /** @description The memory that is the file; null for directories and what was deleted. */
            memory_id: string | null;
            /** @description That memory's version. */
            version: number | null;
            /** @description Of a file that was changed: `completed` exactly when it is searchable. */
            processing_status: ("processing" | "completed" | "failed") | null;
            /** @description Of a file that was changed: whether searches find its text. */
            searchable: boolean | null;
            /** @description Of a file that was changed: where to ask again. */
            status_url: string | null;
            /** @description Of a file that was changed: the event of its current version. */
            outbox_event_id: string | null;
        };
        /** @description Absent fields stay. null clears title, expires_at, tags and metadata, and makes importance what it is of a new memory; metadata is replaced whole. */
        MemoryPatch: {
            /** @description The text to remember, 1 to 100,000 characters. */
            content?: string;
            importance?: number | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
            title?: string | null;
            tags?: string[] | null;
            /** @description When it ceases to be readable. */
            expires_at?: string | null;
            /** @description Wait up to 30 seconds for new content to be searchable. */
            wait_for_index?: boolean | null;
        };
        MemoryUpdated: {
            /** @description The memory's id. */
            id: string;
            /** @description Its version, from 1. */
            version: number;
            /** @description Its text; empty once the memory has been deleted. */
            content: string;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description 0 to 1. */
            importance: number;
            /** @description When it was stored (ISO 8601). */
            created_at: string;
            /** @description When this version was stored (ISO 8601). */
            updated_at: string;
        };
        MemoryUse: {
            /** @description Memories that were put in. */
            injected_ids: string[];
            /** @description Whether memory holds no good evidence about the last message. */
            abstain_recommended: boolean;
            /** @description Whether a part of memory could not be asked. */
            degraded: boolean;
        };
        Merge: {
            /** @description The memory's id. */
            keep: string;
            /** @description Memories that say the same. */
            duplicates: string[];
        };
        Merged: {
            /** @description The memory that stays. */
            keep: string;
            /** @description Memories it now stands for. */
            superseded: string[];
        };
        MergedEntity: {
            /** @description The entity's id; it never changes. */
            id: string;
            /** @description Its name, as first written. */
            name: string;
            /** @description NFKC, case-folded, white space collapsed: what names are compared by. */
            normalized_name: string;
            /** @description What it is; `unknown` when nobody said. */
            type: string;
            /** @description Further names. */
            aliases: string[];
            /** @description Free JSON object. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description Memories that mention it. */
            mention_count: number;
            /** @description When it was first spoken of (ISO 8601). */
            first_seen_at: string;
            /** @description When it was last spoken of (ISO 8601). */
            last_seen_at: string;
            /** @description The collection it belongs to. */
            collection_id: string | null;
            /** @description Relationships it got; those between the two are gone. */
            relationships_moved: number;
            /** @description Mentions by memories that it got. */
            mentions_moved: number;
            /** @description Whether the other one is gone; where not, the rest waits for the next merge. */
            complete: boolean;
            primary: components["schemas"]["Primary"];
            replica_delivery: components["schemas"]["ReplicaDelivery"];
        };
        Message: {
            /** @description Who speaks, such as `user` or `assistant`. */
            role: string;
            /** @description The text to remember, 1 to 100,000 characters. */
            content: string;
            /** @description The speaker's name; the role stands in for it. */
            name?: string | null;
        };
        MetadataBoost: {
            /** @description Path in the metadata, keys joined by dots. */
            field: string;
            /** @description The value it must have; of a list, one of its values. */
            value?: string | boolean | number | null;
            /** @description What a memory gains that has it. */
            weight: number;
        };
        Metrics: {
            /** @description The version in use; 0 is the defaults. */
            active_version: number;
            /** @description Newest first. */
            versions: components["schemas"]["TrainedVersion"][];
        };
        MintedApiKey: {
            /** @description The key's id; delete it under this. */
            id: string;
            /** @description What the key is for. */
            name: string;
            /** @description The first characters of the key, to recognise it by. */
            prefix: string;
            /** @description What the key may do. */
            scopes: ("read" | "write" | "admin")[];
            /** @description When it was minted (ISO 8601). */
            created_at: string;
            /** @description When it stops working; null: never. */
            expires_at: string | null;
            /** @description The key itself. It is shown this once. */
            key: string;
        };
        Missing: {
            /** @description What was searched for. */
            query: string;
            /** @description What should have been found. */
            expected_content: string;
        };
        MissingCounts: {
            count: number;
        };
        NewApiKey: {
            /** @description What the key is for, such as `production`. */
            name: string;
            /**
             * @description What the key may do. write implies read, admin implies both.
             * @default [
             *       "read",
             *       "write"
             *     ]
             */
            scopes?: ("read" | "write" | "admin")[] | null;
            /** @description When the key stops working; never, when absent. */
            expires_at?: string | null;
        };
        NewCollection: {
            /** @description Name; it need not be unique. */
            name: string;
            description?: string | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        NewCorrection: {
            /** @description What is right, 1 to 100,000 characters. */
            corrected_content: string;
            /**
             * @description What kind of thing was wrong.
             * @enum {string}
             */
            correction_type: "preference" | "factual" | "procedural";
            /** @description What was wrong; the memory's text when absent. */
            original_content?: string | null;
            /** @description Where it came up. */
            context?: string | null;
            /** @description The memory that is wrong; the correction supersedes it. */
            memory_id?: string | null;
            /** @description Where the correction goes. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that was corrected. */
            agent_id?: string | null;
            /**
             * @description How sure the correction is.
             * @default 1
             */
            confidence?: number | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        NewDecision: {
            /** @description Which policy the decision belongs to, such as `support.refund`. */
            policy_key: string;
            /** @description The actions to choose from, each with a key of its own. */
            candidates: components["schemas"]["Candidate"][];
            /** @description What the decision depends on; at most 16 KiB. */
            context?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description auto: the service draws, from the baseline while there is little evidence. explore: it draws from the evidence in any case. recommend: it takes the best by the evidence. observe: it records what you chose. shadow: you act by the baseline (or by chosen_action_key), and it notes what it would have recommended.
             * @default auto
             */
            mode?: ("auto" | "observe" | "recommend" | "explore" | "shadow") | null;
            /** @description The candidate to take without evidence. */
            baseline_action_key?: string | null;
            /** @description What you chose; for observe (required) and shadow. */
            chosen_action_key?: string | null;
            /** @description How likely you were to choose it. */
            action_probability?: number | null;
            /** @description How likely you were to choose each candidate; they sum to 1. */
            behavior_probabilities?: {
                [key: string]: number;
            } | null;
            /**
             * @description You cannot say how likely the choice was. It then proves nothing.
             * @default false
             */
            propensity_unknown?: boolean | null;
            /** @description Share of this choice that is drawn evenly. Default: the setting; 0 for recommend. */
            exploration_rate?: number | null;
            /** @description Least and greatest reward there can be. Default: 0 to 1 for success, −1 to 1 for reward. */
            reward_range?: number[] | null;
            /** @description Metric → weight in the composite reward. Default: all the same. */
            metric_weights?: {
                [key: string]: number;
            } | null;
            /** @description The collection it belongs to; none when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            idempotency_key?: string | null;
        };
        /** @description The fields of the form. */
        NewDocument: {
            /**
             * Format: binary
             * @description The file.
             */
            file: string;
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description A name; else the title that the file gives itself. */
            title?: string | null;
            /** @description Labels, with commas between them, at most 32. */
            tags?: string | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: string | null;
        };
        NewEntity: {
            /** @description A name, as it is written. */
            name: string;
            /** @description What it is, such as `person`; any entity of this name when absent. */
            type?: string | null;
            /** @description Further names. */
            aliases?: string[] | null;
            /** @description Free JSON object, at most 16 KiB. */
            attributes?: {
                [key: string]: unknown;
            } | null;
            /** @description The collection it belongs to; none when absent. */
            collection_id?: string | null;
        };
        NewFact: {
            /** @description What it is about, such as `diet`. */
            key: string;
            /** @description What is so. */
            value: string;
        };
        NewLogged: {
            /** @description What kind of decision it was. */
            decision_type: string;
            /** @description What was decided. */
            description: string;
            /** @description How it went, where that is known. */
            outcome?: ("success" | "failure" | "partial") | null;
            /** @description What the decision depends on; at most 16 KiB. */
            context?: {
                [key: string]: unknown;
            } | null;
            /** @description The collection it belongs to; none when absent. */
            collection_id?: string | null;
        };
        /** @description A text, or the messages of a conversation. */
        NewMemory: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /**
             * @description How much it matters, 0 to 1.
             * @default 0.5
             */
            importance?: number | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            title?: string | null;
            /** @description Labels to filter by. */
            tags?: string[] | null;
            /** @description Where it comes from, such as `slack`. */
            source?: string | null;
            /**
             * @description What kind of source that is.
             * @default text
             */
            source_type?: string | null;
            /** @description A reference into the source, such as a URL. */
            source_reference?: string | null;
            /** @description The session it was said in; run_id when absent. */
            session_id?: string | null;
            /** @description Who said it. */
            speaker?: string | null;
            /** @description As what it was said in a chat with an assistant; a message's own role. */
            role?: ("user" | "assistant" | "system" | "tool") | null;
            /** @description When what it tells happened; now when absent. */
            occurred_at?: string | null;
            /** @description When it ceases to be readable; never when absent. */
            expires_at?: string | null;
            /**
             * @description Wait up to 30 seconds for it to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
            /** @description The text to remember. */
            content?: string | null;
            /** @description A conversation instead of a content: one memory per message. */
            messages?: components["schemas"]["Message"][] | null;
            /**
             * @description Store what can be learned from the text instead of the text.
             * @default false
             */
            infer?: boolean | null;
            /**
             * @description With infer: answer 202 at once and do it in the background.
             * @default false
             */
            async_dispatch?: boolean | null;
        } & ({
            content: string;
        } | {
            messages: unknown[];
        });
        NewOutcome: {
            /** @description Metric by metric. */
            observations?: components["schemas"]["Observation"][] | null;
            /** @description One number, −1 to 1, or inside the decision's `reward_range`. */
            reward?: number | null;
            /** @description Whether it went well. */
            success?: boolean | null;
            idempotency_key?: string | null;
        };
        NewPassword: {
            /** @description The password until now. */
            current_password: string;
            /** @description The password from now on. Neither the e-mail address nor the old one, and none of those that are guessed first. */
            new_password: string;
        };
        NewRelationship: {
            /** @description A name, alias or id. */
            source: string;
            /** @description A name, alias or id. */
            target: string;
            /** @description The predicate, such as `works_at`. */
            type: string;
            /** @description Since when it holds; always when absent. */
            valid_from?: string | null;
            /** @description Until when, exclusive; open when absent. */
            valid_to?: string | null;
            /** @description When we learned it; now when absent. */
            recorded_at?: string | null;
            /**
             * @description How sure it is, 0 to 1.
             * @default 1
             */
            confidence?: number | null;
            /** @description Whether a subject has one such target at a time; known for common predicates. */
            functional?: boolean | null;
            /** @description Free JSON object, at most 16 KiB. */
            attributes?: {
                [key: string]: unknown;
            } | null;
            /** @description The memory that says so; the relationship goes when it is deleted. */
            source_memory_id?: string | null;
            /**
             * @description End earlier claims of this subject and predicate where this one begins, which is now when `valid_from` is absent; not where `functional` is false. One that is over already, told again without a beginning, begins anew.
             * @default false
             */
            close_previous?: boolean | null;
        };
        NewWebhook: {
            /** @description Where to deliver to: a public http or https address. */
            url: string;
            /** @description The kinds of events to deliver. */
            events: ("memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed")[];
            description?: string | null;
            signing_secret?: string | null;
        };
        Newer: {
            id: string;
            content: string;
            speaker: string | null;
            occurred_at: string;
        };
        Observation: {
            /** @description Name of a metric. */
            metric_key: string;
            /** @description A number inside the reward range, or true and false for 1 and 0. */
            value: number | boolean;
            /** @description How sure the source is. */
            confidence?: number | null;
            /** @description Who says so. */
            source?: string | null;
            /**
             * @description Whether nothing more is expected of this metric.
             * @default true
             */
            is_final?: boolean | null;
            /** @description The observation it takes the place of. */
            corrects?: string | null;
            idempotency_key?: string | null;
        };
        OperationLatency: {
            /** @description Requests that were let in. */
            requests: number;
            /** @description Of these, those answered with 4xx. */
            client_errors: number;
            /** @description Of these, those answered with 5xx, or not at all. */
            server_errors: number;
            /** @description Share of both among the requests, 0 to 1. */
            error_share: number;
            /** @description Mean milliseconds. */
            mean_ms: number;
            /** @description Half were answered within so many milliseconds. */
            p50_ms: number;
            /** @description 95 of 100 were answered within so many milliseconds. */
            p95_ms: number;
            /** @description 99 of 100 were answered within so many milliseconds. */
            p99_ms: number;
            /** @description Name of the operation, such as `memories.create`. */
            operation: string;
        };
        OperationShare: {
            /** @description Name of the operation, such as `memories.create`. */
            operation: string;
            /** @description Requests. */
            count: number;
            /** @description Credits they cost. */
            credits: number;
        };
        Outcome: {
            observation_id: string;
            metric_key: string;
            value: number;
            /** @description How sure the source is, as reported; kept, not interpreted. */
            confidence: number | null;
            source: string | null;
            is_final: boolean;
            /** @description The observation it takes the place of. */
            corrects: string | null;
            at: string;
        };
        OutcomeRecorded: {
            decision_id: string;
            /** @description Of this report, in order. */
            observation_ids: string[];
            /** @enum {string} */
            status: "pending" | "final" | "corrected";
            composite_reward: number | null;
            /** @description Observations of the decision so far. */
            outcome_count: number;
            /** @description The policy's version after this report. */
            evidence_revision: number;
            replayed: boolean;
        };
        Outdated: {
            /** @description First code point of what has been superseded. */
            start: number;
            /** @description The code point after its last. */
            end: number;
            /** @description The memory of the fact that was read in it. */
            fact_id: string;
            /** @description The memory of what was said since. */
            superseded_by: components["schemas"]["Newer"] | null;
        };
        Page_Chunk_: {
            /** @description One page of resources. */
            items: components["schemas"]["Chunk"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_CleanupReceipt_: {
            /** @description One page of resources. */
            items: components["schemas"]["CleanupReceipt"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Collection_: {
            /** @description One page of resources. */
            items: components["schemas"]["Collection"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Contradiction_: {
            /** @description One page of resources. */
            items: components["schemas"]["Contradiction"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Correction_: {
            /** @description One page of resources. */
            items: components["schemas"]["Correction"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Delivery_: {
            /** @description One page of resources. */
            items: components["schemas"]["Delivery"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Document_: {
            /** @description One page of resources. */
            items: components["schemas"]["Document"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Entity_: {
            /** @description One page of resources. */
            items: components["schemas"]["Entity"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_HistoryItem_: {
            /** @description One page of resources. */
            items: components["schemas"]["HistoryItem"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Invoice_: {
            /** @description One page of resources. */
            items: components["schemas"]["Invoice"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_ListedApiKey_: {
            /** @description One page of resources. */
            items: components["schemas"]["ListedApiKey"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_ListedSession_: {
            /** @description One page of resources. */
            items: components["schemas"]["ListedSession"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_LoggedDecision_: {
            /** @description One page of resources. */
            items: components["schemas"]["LoggedDecision"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_MemoryJob_: {
            /** @description One page of resources. */
            items: components["schemas"]["MemoryJob"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Memory_: {
            /** @description One page of resources. */
            items: components["schemas"]["Memory"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Policy_: {
            /** @description One page of resources. */
            items: components["schemas"]["Policy"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Relationship_: {
            /** @description One page of resources. */
            items: components["schemas"]["Relationship"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Tier_: {
            /** @description One page of resources. */
            items: components["schemas"]["Tier"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Version_: {
            /** @description One page of resources. */
            items: components["schemas"]["Version"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Page_Webhook_: {
            /** @description One page of resources. */
            items: components["schemas"]["Webhook"][];
            /** @description Pass it as `cursor` to get the next page; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more items follow. */
            has_more: boolean;
            /** @description How many items match the filters. */
            total_count: number;
        };
        Part: {
            /** @description Records of this part, in the order of the export. */
            records: components["schemas"]["Record"][];
            /** @description Pass it as `cursor` to get the next part; null on the last one. */
            next_cursor: string | null;
            /** @description Whether more parts follow. */
            has_more: boolean;
        };
        Path: {
            /** @description The result. */
            memory_id: string;
            /** @description From an entity that was asked for; empty when the memory mentions that itself, or what a memory mentions that does. */
            hops: components["schemas"]["Hop"][];
        };
        PendingChange: {
            /** @description The tier it will be. */
            tier: string;
            /** @description When (ISO 8601); null: as soon as the invoice is paid, within this month. */
            effective_at: string | null;
            /** @description The invoice that an upgrade waits for. */
            invoice_id: string | null;
        };
        Policy: {
            /** @description Which policy. */
            policy_key: string;
            /** @description How often its evidence has changed. */
            policy_version: number;
            /** @description Decisions made under it. */
            decisions: number;
            /** @description Of these, how many have an outcome. */
            outcomes: number;
            /** @description When its first decision was made (ISO 8601). */
            created_at: string;
            /** @description When its latest was; null when all were deleted with their collections. */
            last_decision_at: string | null;
        };
        Posterior: {
            mean: number;
            /** @description 5 % and 95 % quantiles of the action's mean reward. */
            credible_interval_90: number[];
            /** @description beta for rewards between 0 and 1; else Student's t, cut to the reward range. */
            distribution: components["schemas"]["BetaParameters"] | components["schemas"]["StudentParameters"];
        };
        Primary: {
            /**
             * @description It is on disk.
             * @constant
             */
            status: "committed";
            /**
             * @description The next read sees it.
             * @constant
             */
            read_after_write: true;
            /** @description Number of the commit. */
            sequence: number;
        };
        /** @description A text, or the messages of a conversation. */
        ProcessBody: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /** @description A text, as one message of the user; required unless `messages` are given. */
            content?: string | null;
            /** @description A conversation. */
            messages?: components["schemas"]["Message"][] | null;
            /** @description The session it was said in; run_id when absent. */
            session_id?: string | null;
            /** @description When it took place; now when absent. Relative times count from it. */
            occurred_at?: string | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description What a language model is to look for. */
            instructions?: string | null;
            /**
             * @description Say what would happen; store nothing.
             * @default false
             */
            dry_run?: boolean | null;
        } & ({
            content: string;
        } | {
            messages: unknown[];
        });
        Profile: {
            user_id: string | null;
            name: string | null;
            timezone: string | null;
            language: string | null;
            bio: string | null;
            /** @description What stays: set facts first, then derived ones, latest first. */
            static: components["schemas"]["Fact"][];
            /** @description What passes: plans, occupations of the moment. */
            dynamic: components["schemas"]["Fact"][];
            /** @description The facts of both lists by what they are about, with former ones apart; sections without a fact are left out. */
            sections: components["schemas"]["ProfileSection"][];
            /** @description When something about it last changed (ISO 8601); null: never. */
            updated_at: string | null;
            /** @description Readable memories of this user. */
            memory_count: number;
        };
        /** @description Absent fields stay; null clears. `static` replaces the facts that were set before; derived ones are not touched. */
        ProfilePatch: {
            /** @description What to call the user. */
            name?: string | null;
            /** @description IANA time zone. */
            timezone?: string | null;
            /** @description BCP 47 language tag. */
            language?: string | null;
            /** @description A few sentences. */
            bio?: string | null;
            /** @description Facts to hold as given. */
            static?: components["schemas"]["NewFact"][] | null;
        };
        ProfileSection: {
            /** @enum {string} */
            name: "who" | "where" | "work" | "people" | "health_and_diet" | "likes_and_dislikes" | "plans" | "habits" | "possessions" | "dates";
            /** @description What holds, set facts first, then latest first. */
            current: components["schemas"]["Fact"][];
            /** @description What held once: replaced by a later value, or said to hold no more. */
            former: components["schemas"]["Fact"][];
        };
        Ranking: {
            /** @description What was searched for. */
            query: string;
            /** @description The memory's id. */
            memory_id: string;
            /** @description Where the memory stood, from 1. */
            actual_rank: number;
            /** @description Where it should have stood, from 1. */
            expected_rank: number;
        };
        RankingCounts: {
            count: number;
            /** @description Mean distance of the actual rank from the expected; null without any. */
            mean_absolute_rank_error: number | null;
        };
        /** @description A memory to store as it is. */
        RawMemory: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /**
             * @description How much it matters, 0 to 1.
             * @default 0.5
             */
            importance?: number | null;
            /** @description Free JSON object, at most 16 KiB. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            title?: string | null;
            /** @description Labels to filter by. */
            tags?: string[] | null;
            /** @description Where it comes from, such as `slack`. */
            source?: string | null;
            /**
             * @description What kind of source that is.
             * @default text
             */
            source_type?: string | null;
            /** @description A reference into the source, such as a URL. */
            source_reference?: string | null;
            /** @description The session it was said in; run_id when absent. */
            session_id?: string | null;
            /** @description Who said it. */
            speaker?: string | null;
            /** @description As what it was said in a chat with an assistant; a message's own role. */
            role?: ("user" | "assistant" | "system" | "tool") | null;
            /** @description When what it tells happened; now when absent. */
            occurred_at?: string | null;
            /** @description When it ceases to be readable; never when absent. */
            expires_at?: string | null;
            /**
             * @description Wait up to 30 seconds for it to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
            /** @description The text to remember, 1 to 100,000 characters. */
            content: string;
        };
        /** @description A search, and how to answer from it. */
        ReasonBody: {
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Search this collection only. */
            collection_id?: string | null;
            /** @description Only memories of this end user. */
            user_id?: string | null;
            /** @description Only memories of this agent. */
            agent_id?: string | null;
            /** @description Only memories of this run. */
            run_id?: string | null;
            /** @description Only memories of this application. */
            app_id?: string | null;
            /** @description Only memories of this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /** @description Search what was known at this instant (of a date without a time, at the end of that day): memories stored by then, superseded ones too when that happened later. They are searched with the content they have now. */
            as_of?: string | null;
            /** @description What yesterday, last week and the like count from; as_of or else now when absent. */
            reference_date?: string | null;
            /**
             * @description Which channels propose candidates.
             * @default hybrid
             */
            search_type?: ("hybrid" | "vector" | "bm25" | "graph") | null;
            /**
             * @description Leave out late interaction, which compares word by word: sooner, and less exact.
             * @default false
             */
            fast?: boolean | null;
            /**
             * @description At most so many results.
             * @default 10
             */
            limit?: number | null;
            /**
             * @description Skip so many results.
             * @default 0
             */
            offset?: number | null;
            /** @description Leave out results whose normalized_score is lower. */
            threshold?: number | null;
            /** @description Another name for threshold; of two, the higher one counts. */
            min_score?: number | null;
            /** @description Keep of the page's results, best first, those whose contents fit into so many tokens together; one that does not fit is left out. A token is estimated as four ASCII characters, or one other. */
            token_budget?: number | null;
            /**
             * @description Also search memories that a newer one replaced.
             * @default false
             */
            include_superseded?: boolean | null;
            /**
             * @description Also return weak results, flagged, instead of no_match.
             * @default false
             */
            include_low_confidence?: boolean | null;
            /** @description How far below the best result others may stand: strict keeps few and surer ones, balanced more, and more yet where several things are asked for, all every one that stands; balanced, unless the installation says otherwise, when absent from a hybrid search, else all. include_low_confidence counts as all. */
            relevance?: ("strict" | "balanced" | "all") | null;
            /**
             * @description Say what each feature contributed to each score.
             * @default false
             */
            explain?: boolean | null;
            /**
             * @description Another name for explain.
             * @default false
             */
            debug?: boolean | null;
            /**
             * @description compact leaves out metadata, tags, highlights and explanations.
             * @default full
             */
            view?: ("compact" | "full") | null;
            /**
             * @description Say what was searched for and how the answer came about.
             * @default false
             */
            include_steps?: boolean | null;
            /**
             * @description At most so many tokens of answer.
             * @default 512
             */
            max_tokens?: number | null;
        };
        ReasonReply: {
            query: string;
            /** @description null when nothing stored supports an answer. */
            answer: string | null;
            /** @enum {string} */
            engine: "llm" | "extractive";
            /** @description The language model asked, null with the extractive engine. */
            model: string | null;
            /** @description What the answer was made from, best first. */
            sources: components["schemas"]["Source"][];
            /** @description Verbatim quotations the answer rests on, best first. An extractive answer is the first; the others are the best sentences of further memories. */
            citations: components["schemas"]["Citation"][];
            /** @description With `include_steps`. */
            steps?: components["schemas"]["Step"][] | null;
            usage: components["schemas"]["TokenUsage"];
            no_match: boolean;
            abstain_recommended: boolean;
            abstain_reason?: ("no_match" | "weak_evidence" | "subject_conflict" | "low_confidence" | "no_answer_found" | "unsupported") | null;
            query_confidence: number;
            grounding: components["schemas"]["Grounding"];
            evidence_ids: string[];
            safety_contract_version: string;
            scores_calibrated: boolean;
            degraded: boolean;
            degraded_reasons: string[];
        };
        ReceiptText: {
            /** @description What the DELETE of the account answered. */
            receipt: string;
        };
        RecencyBoost: {
            /** @description Age at which half of the weight is left. */
            half_life_days: number;
            /** @description What a memory of this moment gains. */
            weight: number;
        };
        /** @description One line of an export. */
        Record: {
            /** @description What the record is, such as `memory`. */
            kind: string;
            /** @description The record itself. */
            record: {
                [key: string]: unknown;
            };
        };
        Registration: {
            /**
             * Format: email
             * @description E-mail address; white space around it and letter case do not count.
             */
            email: string;
            /** @description The password. */
            password: string;
            /** @description The account holder's name. */
            full_name: string;
            /** @description Needed where `auth.registration` is `invite` or `mailed`. */
            invitation?: string | null;
        };
        Relationship: {
            /** @description The relationship's id; it never changes. */
            id: string;
            /** @description The subject. */
            source: components["schemas"]["EntityName"];
            /** @description The predicate. */
            type: string;
            /** @description The object. */
            target: components["schemas"]["EntityName"];
            /** @description Free JSON object. */
            attributes: {
                [key: string]: unknown;
            };
            /** @description How sure it is, 0 to 1. */
            confidence: number;
            /** @description Since when it holds (ISO 8601); null: always. */
            valid_from: string | null;
            /** @description Until when, exclusive (ISO 8601); null: open. */
            valid_to: string | null;
            /** @description When we learned it (ISO 8601). */
            recorded_at: string;
            /** @description When we learned that it was wrong (ISO 8601). */
            invalidated_at: string | null;
            /** @description The memory that first said so. */
            source_memory_id: string | null;
            /** @description Whether a subject has one such target at a time. */
            functional: boolean;
        };
        RelationshipChoice: {
            relationship_id?: string | null;
        };
        Relevance: {
            /** @description What was searched for. */
            query: string;
            /** @description The memory's id. */
            memory_id: string;
            /** @description Whether the memory answers the query. */
            is_relevant: boolean;
        };
        RelevanceCounts: {
            count: number;
            relevant: number;
            /** @description Share of the relevant ones; null without any. */
            precision: number | null;
        };
        RelevantCorrection: {
            /** @description The correction's id. */
            id: string;
            /** @description The memory that holds the corrected content. */
            memory_id: string;
            /** @description The memory it took the place of. */
            superseded_memory_id: string | null;
            corrected_content: string;
            /** @enum {string} */
            correction_type: "preference" | "factual" | "procedural";
            original_content: string | null;
            context: string | null;
            collection_id: string;
            user_id: string | null;
            agent_id: string | null;
            confidence: number;
            metadata: {
                [key: string]: unknown;
            };
            created_at: string;
            searchable: boolean;
            /** @enum {string} */
            processing_status: "processing" | "completed" | "failed";
            status_url: string;
            outbox_event_id: string;
            /** @description How near it is to the query, 0 to 1. */
            score: number;
        };
        RelevantCorrections: {
            /** @description Nearest first. */
            items: components["schemas"]["RelevantCorrection"][];
            /** @description How many are near enough. */
            total_count: number;
        };
        Replace: {
            /** @description The memory's id. */
            memory_id: string;
            /** @description Where the memory must be. */
            collection_id?: string | null;
            /**
             * @description Wait up to 30 seconds for it to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
            /** @description The memory's whole text, as the agent knows it. */
            old_content: string;
            /** @description The text to remember, 1 to 100,000 characters. */
            new_content: string;
        };
        ReplayMany: {
            /** @description Deliveries to replay; skipped ones may be among them. */
            ids?: string[] | null;
            /** @description Instead of ids: dead letters of events from this time on. */
            since?: string | null;
            /** @description Instead of ids: dead letters of events before this time; of a date without a time, those of that day too. */
            until?: string | null;
            /**
             * @description With since or until: also what was skipped while the webhook was disabled.
             * @default false
             */
            include_skipped?: boolean | null;
        };
        ReplayResult: {
            /** @description The delivery's id. */
            id: string;
            /**
             * @description refused: its webhook is disabled, or what it tells of was deleted.
             * @enum {string}
             */
            status: "replayed" | "under_way" | "refused" | "not_found" | "forbidden";
        };
        Replayed: {
            /** @description Deliveries that begin anew. */
            replayed: number;
            /** @description Whether more of the range is left; ask again. */
            has_more: boolean;
            /** @description One entry for each id; for a range, for each that was replayed. */
            results: components["schemas"]["ReplayResult"][];
        };
        ReplicaDelivery: {
            /**
             * @description Whether copies elsewhere have it.
             * @enum {string}
             */
            status: "not_configured" | "pending" | "delivered";
            /** @description The event of this change. */
            outbox_event_id: string;
        };
        Requests: {
            /** @description Authenticated requests since the period began. */
            used: number;
            /** @description Requests that a limit refused; they cost nothing and count nowhere else. */
            refused: number;
        };
        Reset: {
            /** @description The ticket that was mailed. */
            token: string;
            /** @description The password from now on; none of those that are guessed first. */
            new_password: string;
        };
        ResetAsked: {
            /**
             * @description If the address has an account, it is sent a ticket.
             * @constant
             */
            status: "accepted";
        };
        ResetRequest: {
            /**
             * Format: email
             * @description E-mail address; white space around it and letter case do not count.
             */
            email: string;
        };
        Resolution: {
            /** @description Id of the relationship to go by. */
            kept: string;
            /** @description Why. */
            reason: string;
        };
        Rethink: {
            /** @description The memory's id. */
            memory_id: string;
            /** @description Where the memory must be. */
            collection_id?: string | null;
            /**
             * @description Wait up to 30 seconds for it to be searchable.
             * @default false
             */
            wait_for_index?: boolean | null;
        };
        Rollback: {
            /** @description A promoted version, or 0 for the defaults. */
            version: number;
        };
        Room: {
            /** @description Memories; -1 is unlimited. */
            memories: number;
            /** @description Documents; -1 is unlimited. */
            documents: number;
            /** @description Entities; -1 is unlimited. */
            entities: number;
            /** @description Collections; -1 is unlimited. */
            collections: number;
            /** @description Profiles of end users; -1 is unlimited. */
            profiles: number;
            /** @description Bytes of the documents' files and of their texts; -1 is unlimited. */
            file_bytes: number;
            /** @description Bytes of the memories' texts and of their earlier versions; -1 is unlimited. */
            text_bytes: number;
        };
        RotatedWebhook: {
            /** @description The webhook's id. */
            id: string;
            /** @description Where it delivers to. */
            url: string;
            /** @description The kinds of events it takes. */
            events: ("memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed")[];
            /** @description What it is for. */
            description: string | null;
            /**
             * @description A disabled webhook delivers nothing; its events are kept as skipped.
             * @enum {string}
             */
            status: "active" | "disabled";
            /** @description Why it is disabled. */
            disabled_reason: string | null;
            /** @description When it was created (ISO 8601). */
            created_at: string;
            /** @description When it was last changed (ISO 8601). */
            updated_at: string;
            /** @description When it last took an event with a 2xx. */
            last_delivery_at: string | null;
            /** @description Failed attempts since then. */
            failure_count: number;
            /** @description Verifies deliveries. It is shown this once. */
            signing_secret: string;
            /** @description Until when the secret before signs as well (ISO 8601). */
            previous_secret_expires_at: string;
        };
        Rotation: {
            /**
             * @description How long requests are signed with the secret before as well.
             * @default 86400
             */
            grace_seconds?: number | null;
            signing_secret?: string | null;
        };
        ScopeFound: {
            /**
             * @description What it names: `user` stands for user_id, and so on.
             * @enum {string}
             */
            kind: "user" | "agent" | "app" | "run";
            /** @description The name that its memories were given. */
            name: string;
            /** @description Memories that can be read now, superseded ones aside. */
            memory_count: number;
            /** @description When the oldest of them was stored (ISO 8601). */
            first_memory_at: string;
            /** @description When the newest of them was stored (ISO 8601). */
            last_memory_at: string;
        };
        ScopesFound: {
            /** @description The latest to appear first. */
            items: components["schemas"]["ScopeFound"][];
            /** @description How many there are. */
            total_count: number;
        };
        SearchBody: {
            /** @description What to look for, in plain words. */
            query: string;
            /** @description Search this collection only. */
            collection_id?: string | null;
            /** @description Only memories of this end user. */
            user_id?: string | null;
            /** @description Only memories of this agent. */
            agent_id?: string | null;
            /** @description Only memories of this run. */
            run_id?: string | null;
            /** @description Only memories of this application. */
            app_id?: string | null;
            /** @description Only memories of this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /** @description Search what was known at this instant (of a date without a time, at the end of that day): memories stored by then, superseded ones too when that happened later. They are searched with the content they have now. */
            as_of?: string | null;
            /** @description What yesterday, last week and the like count from; as_of or else now when absent. */
            reference_date?: string | null;
            /**
             * @description Which channels propose candidates.
             * @default hybrid
             */
            search_type?: ("hybrid" | "vector" | "bm25" | "graph") | null;
            /**
             * @description Leave out late interaction, which compares word by word: sooner, and less exact.
             * @default false
             */
            fast?: boolean | null;
            /**
             * @description At most so many results.
             * @default 10
             */
            limit?: number | null;
            /**
             * @description Skip so many results.
             * @default 0
             */
            offset?: number | null;
            /** @description Leave out results whose normalized_score is lower. */
            threshold?: number | null;
            /** @description Another name for threshold; of two, the higher one counts. */
            min_score?: number | null;
            /** @description Keep of the page's results, best first, those whose contents fit into so many tokens together; one that does not fit is left out. A token is estimated as four ASCII characters, or one other. */
            token_budget?: number | null;
            /**
             * @description Also search memories that a newer one replaced.
             * @default false
             */
            include_superseded?: boolean | null;
            /**
             * @description Also return weak results, flagged, instead of no_match.
             * @default false
             */
            include_low_confidence?: boolean | null;
            /** @description How far below the best result others may stand: strict keeps few and surer ones, balanced more, and more yet where several things are asked for, all every one that stands; balanced, unless the installation says otherwise, when absent from a hybrid search, else all. include_low_confidence counts as all. */
            relevance?: ("strict" | "balanced" | "all") | null;
            /**
             * @description Say what each feature contributed to each score.
             * @default false
             */
            explain?: boolean | null;
            /**
             * @description Another name for explain.
             * @default false
             */
            debug?: boolean | null;
            /**
             * @description compact leaves out metadata, tags, highlights and explanations.
             * @default full
             */
            view?: ("compact" | "full") | null;
        };
        SearchCompleted: {
            /** @description The request's id, as in X-Request-ID. */
            id: string;
            /** @description Equal for equal queries of this account; the query cannot be told from it. */
            query_hash: string;
            /** @description hybrid, vector, bm25 or graph. */
            search_type: string;
            /** @description Results on the page that was returned. */
            result_count: number;
            /** @description Ids of these results, best first. */
            top_ids: string[];
            /** @description Nothing stored answers the query. */
            no_match: boolean;
            /** @description How long it took. */
            took_ms: number;
        };
        SearchReply: {
            query: string;
            results: components["schemas"]["Hit"][];
            /** @description How many memories passed the threshold, before offset and limit, of those that were looked at: each channel proposes `search.candidates`, or as many as offset and limit ask for where that is more, 1,000 at most. */
            total: number;
            search_type: string;
            processing_time_ms: number;
            /** @description Nothing stored stands as an answer; there are no results then. */
            no_match: boolean;
            /** @description Better not to answer from these results. */
            abstain_recommended: boolean;
            /** @description Why. subject_conflict: what the query asks of one speaker fits another one better. */
            abstain_reason?: ("no_match" | "weak_evidence" | "subject_conflict") | null;
            /** @description 0 to 1; how likely the results hold an answer. It ranks queries; it is no probability. */
            query_confidence: number;
            grounding: components["schemas"]["Grounding"];
            evidence_ids: string[];
            safety_contract_version: string;
            /** @description Always false: scores rank, they are no probabilities. */
            scores_calibrated: boolean;
            /** @description With `explain`: the section of the settings whose weights were used. */
            ranking_profile?: ("ranking" | "ranking_notes" | "ranking_fast") | null;
            reranker_applied: boolean;
            /** @description Whether a channel was missing; degraded_reasons says which. */
            degraded: boolean;
            degraded_reasons: string[];
            query_entities: string[];
        };
        Secret: {
            /** @description The secret, base32. It is shown this once. */
            secret: string;
            /** @description The same for an authenticator app, as a QR code shows it. */
            otpauth_uri: string;
        };
        SentRecord: {
            /** @description What the record is. */
            kind: string;
            /** @description The record, as it was exported. */
            record: {
                [key: string]: unknown;
            };
        };
        Session: {
            /** @description A bearer credential with all scopes. */
            access_token: string;
            /**
             * @description Send it as `Authorization: Bearer <access_token>`.
             * @constant
             */
            token_type: "bearer";
            /** @description Seconds until the token expires. */
            expires_in: number;
            /** @description The account's id. */
            user_id: string;
            /** @description The normalised e-mail address. */
            email: string;
            /** @description The account holder's name. */
            full_name: string;
        };
        SessionsEnded: {
            /** @description How many sessions ended. */
            ended: number;
        };
        ShardCount: {
            /** @description Shards that answer. */
            open: number;
            /** @description Shards this installation has. */
            total: number;
        };
        SimilarDecision: {
            id: string;
            decision_type: string;
            description: string;
            outcome: ("success" | "failure" | "partial") | null;
            context: {
                [key: string]: unknown;
            };
            collection_id: string | null;
            created_at: string;
            /** @description How near it is to the query, 0 to 1. */
            score: number;
        };
        SimilarDecisions: {
            /** @description Nearest first. */
            items: components["schemas"]["SimilarDecision"][];
            /** @description How many are near enough. */
            total_count: number;
        };
        Source: {
            memory_id: string;
            content: string;
            /** @description Its score in the search. */
            score: number;
        };
        SourceMemory: {
            /** @description The memory's id. */
            memory_id: string;
            /** @description Its text. */
            content: string;
            /** @description When what it tells happened (ISO 8601). */
            occurred_at: string;
        };
        StaleMemory: {
            /** @description The memory's id. */
            id: string;
            /** @description Its text. */
            content: string;
            /**
             * @description Why it is stale.
             * @enum {string}
             */
            reason: "archived" | "never_used";
            /** @description When it was stored (ISO 8601). */
            created_at: string;
        };
        /** @description What the events billing.suspended and billing.resumed say. */
        Standing: {
            /** @description The invoice that was open for too long. */
            id: string;
            /** @description Its number. */
            number: string;
            /**
             * @description The subscription's status now.
             * @enum {string}
             */
            status: "suspended" | "active";
        };
        StatementCounts: {
            /** @description Sentences of the messages that were read. */
            seen: number;
            /** @description Of these, those that a memory made by this job holds. */
            kept: number;
            /** @description Of these, those that facts were found in. */
            facts: number;
            /** @description The rest, by why no new memory holds them. */
            left_out: components["schemas"]["LeftOut"];
        };
        Stats: {
            relevance: components["schemas"]["RelevanceCounts"];
            ranking: components["schemas"]["RankingCounts"];
            missing: components["schemas"]["MissingCounts"];
            /** @description The last 30 days with feedback, newest first. */
            by_day: components["schemas"]["DayCounts"][];
        };
        Step: {
            /** @enum {string} */
            kind: "search" | "rephrase" | "answer" | "check";
            detail: string;
            /** @description How many results a search had. */
            results?: number | null;
            /** @description query_confidence of a search. */
            confidence?: number | null;
        };
        StoreReceipt: {
            /** @description A table, an index, or another place where data lies. */
            store: string;
            /**
             * @description What became of it.
             * @enum {string}
             */
            outcome: "erased" | "retained";
            /** @description How many rows were erased; null for what is retained. */
            count: number | null;
            /** @description Why it is retained. */
            reason: string | null;
        };
        Stored: {
            /** @description Memories. */
            memories: number;
            /** @description Documents. */
            documents: number;
            /** @description Entities of the knowledge graph. */
            entities: number;
            /** @description Collections, without the default one. */
            collections: number;
            /** @description Profiles of end users, those that were derived included; one that was deleted counts while there are memories of its user. */
            profiles: number;
            /** @description Bytes of the documents' files, each content once, and of the texts read out of them. */
            file_bytes: number;
            /** @description Bytes of the memories' texts, tags and metadata, and of their earlier versions, until what was deleted is removed. */
            text_bytes: number;
            /** @description Bytes of the memories, without indexes, and of the documents' files; estimated where there are very many. */
            bytes: number;
            /** @description What the tier has room for; a write beyond it is refused, and reads go on. */
            limits: components["schemas"]["Room"];
        };
        StudentParameters: {
            /** @constant */
            family: "student_t";
            location: number;
            scale: number;
            degrees_of_freedom: number;
            /** @description Least reward there can be, where it is cut. */
            low: number;
            /** @description Greatest. */
            high: number;
        };
        Subscription: {
            /** @description The subscription's id. */
            id: string;
            tier: components["schemas"]["Tier"];
            /**
             * @description `suspended`: an invoice is overdue, and what costs credits and is no read is 403 until it is paid.
             * @enum {string}
             */
            status: "active" | "suspended";
            /** @description Of one that is suspended: why. */
            suspension: components["schemas"]["Suspension"] | null;
            /** @description First instant of the running month (ISO 8601, UTC). */
            period_start: string;
            /** @description First instant of the next one. */
            period_end: string;
            /** @description An upgrade that waits for its payment, or a downgrade that waits for the end of the period. */
            pending_change: components["schemas"]["PendingChange"] | null;
            /** @description Who collects the invoices: `manual` or `stripe`. */
            provider: string;
        };
        /** @description What a create did, over all its memories. */
        Summary: {
            /** @description One entry per memory, in order. */
            results: components["schemas"]["WriteResult"][];
            /** @description The same ids. */
            memory_ids: string[];
            /** @description Memories added. */
            created_count: number;
            /** @description Memories that took another's place. */
            updated_count: number;
            /** @description Texts that were known already. */
            skipped_count: number;
            /** @description The collection written to. */
            collection_id: string;
            /**
             * @description `completed` when all are searchable.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
            /** @description Whether all are searchable. */
            searchable: boolean;
            /** @description Where to ask again: the memory, or the job of several. */
            status_url: string;
            /** @description The event of the first memory; null when a repeated request made none. */
            outbox_event_id: string | null;
            /** @description This request's id. */
            request_id: string;
            /** @description The job that makes them searchable, while one is needed. */
            job_id?: string | null;
            /** @description Where that job reports. */
            poll_url?: string | null;
        };
        Suspension: {
            /** @description Since when (ISO 8601). */
            since: string;
            /** @description The invoice that was open for too long. */
            invoice_id: string;
            /** @description Why, and what ends it, for people. */
            reason: string;
        };
        TargetAction: {
            /** @description Name of an action. */
            action_key: string;
        };
        TestEvent: {
            /** @description The test event's id. */
            event_id: string;
            /** @description Its delivery; look at it under /v1/webhooks/{id}/deliveries/{delivery_id}. */
            delivery_id: string;
        };
        Tier: {
            /** @description Key of the tier. */
            name: string;
            /** @description What it is called. */
            display_name: string;
            /** @description Its price, in words. */
            price: string;
            /** @description Its price in cents a month; null: by agreement. */
            price_cents: number | null;
            /** @description Credits a month; -1 is unlimited. */
            credits: number;
            /** @description Requests a minute; 0 is unlimited. */
            requests_per_minute: number;
            /** @description Bytes of files and of their texts; -1 is unlimited. */
            file_bytes: number;
            /** @description Bytes of memories' texts, as kept; -1 is unlimited. */
            text_bytes: number;
            /** @description Memories that may be kept; -1 is unlimited. */
            memories: number;
            /** @description Documents that may be kept; -1 is unlimited. */
            documents: number;
            /** @description Entities that may be asked for; -1 is unlimited. */
            entities: number;
            /** @description Collections that may be kept; -1 is unlimited. */
            collections: number;
            /** @description Profiles that may be asked for; -1 is unlimited. */
            profiles: number;
        };
        TierChanged: {
            /** @description The memory's id. */
            id: string;
            /** @description Its version, from 1. */
            version: number;
            /** @description Its text; empty once the memory has been deleted. */
            content: string;
            /** @description The collection it belongs to. */
            collection_id: string;
            /** @description 0 to 1. */
            importance: number;
            /** @description When it was stored (ISO 8601). */
            created_at: string;
            /** @description When it changed tier (ISO 8601). */
            updated_at: string;
            /** @description The tier it is in now. */
            tier: string;
            /** @description The tier it came from. */
            previous_tier: string;
        };
        TokenUsage: {
            prompt_tokens: number;
            completion_tokens: number;
            total_tokens: number;
        };
        Train: {
            /**
             * @description What to train: the ranking of searches.
             * @default ranking
             */
            policy?: "ranking" | null;
        };
        TrainedVersion: {
            version: number;
            trained_at: string;
            /** @description Mean NDCG@10 on the held-out queries, with the ranking in use. */
            ndcg_before: number;
            /** @description The same with what was learned. */
            ndcg_after: number;
            promoted: boolean;
            reason: string;
        };
        TrainingEvent: {
            /** @description The job's id. */
            id: string;
            /** @description The same id. */
            job_id: string;
            policy: string;
            metrics?: {
                [key: string]: number;
            } | null;
            promoted?: boolean | null;
            error?: string | null;
        };
        Undone: {
            /** @description The job. */
            job_id: string;
            /** @description Memories it had created that are now deleted. */
            deleted: number;
            /** @description Memories it had superseded that hold again. */
            restored: number;
            /** @description Memories it had created that stay: those whose text was edited since, and the turns that these rest on. */
            kept: string[];
        };
        Upgraded: {
            /** @description The subscription's id. */
            id: string;
            tier: components["schemas"]["Tier"];
            /**
             * @description `suspended`: an invoice is overdue, and what costs credits and is no read is 403 until it is paid.
             * @enum {string}
             */
            status: "active" | "suspended";
            /** @description Of one that is suspended: why. */
            suspension: components["schemas"]["Suspension"] | null;
            /** @description First instant of the running month (ISO 8601, UTC). */
            period_start: string;
            /** @description First instant of the next one. */
            period_end: string;
            /** @description An upgrade that waits for its payment, or a downgrade that waits for the end of the period. */
            pending_change: components["schemas"]["PendingChange"] | null;
            /** @description Who collects the invoices: `manual` or `stripe`. */
            provider: string;
            /** @description What the rest of the month costs more. */
            invoice: components["schemas"]["Invoice"];
        };
        Uploaded: {
            /** @description The document. */
            document: components["schemas"]["Document"];
            /** @description The job that processes it. */
            job_id: string;
            /** @description Where to look how far it is: the document itself. */
            status_url: string;
        };
        /** @description The file of a form: what the gateway found out while it arrived, and where it is. */
        UploadedFile: {
            /** @description The name it was sent under, without a path. */
            filename: string;
            /** @description What its content is. */
            media_type: string;
            /** @description Its length. */
            size_bytes: number;
            /** @description Hex digest of its content. */
            sha256: string;
            charset?: string | null;
            blob_name: string;
            /** Format: binary */
            blob_key: string;
        };
        Usage: {
            /** @description First instant of the period, a calendar month (ISO 8601, UTC). */
            period_start: string;
            /** @description First instant of the next one. */
            period_end: string;
            /** @description The tier of the account's plan. */
            tier: string;
            credits: components["schemas"]["Credits"];
            requests: components["schemas"]["Requests"];
            /** @description Requests per minute; -1 is unlimited. */
            rate_limit_per_minute: number;
            /** @description By operation, the costliest first. */
            by_operation: components["schemas"]["OperationShare"][];
            /** @description By API key, the costliest first. */
            by_api_key: components["schemas"]["KeyShare"][];
            storage: components["schemas"]["Stored"];
        };
        ValueFound: {
            /** @description A value of the field. */
            value: string | boolean | number | null;
            /** @description Memories that have it. */
            count: number;
        };
        ValuesFound: {
            /** @description The most frequent first; of equally frequent ones, the first to appear. */
            items: components["schemas"]["ValueFound"][];
            /** @description How many distinct values there are. */
            total_count: number;
        };
        ValuesQuery: {
            /** @description The collection it belongs to; the default one when absent. */
            collection_id?: string | null;
            /** @description The caller's end user. */
            user_id?: string | null;
            /** @description The agent that remembers. */
            agent_id?: string | null;
            /** @description The run or conversation. */
            run_id?: string | null;
            /** @description The application. */
            app_id?: string | null;
            /** @description Only this session. */
            session_id?: string | null;
            /** @description Conditions on fields, with AND, OR and NOT, as in a search. */
            filters?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Include memories that newer ones have superseded.
             * @default false
             */
            include_superseded?: boolean | null;
            /** @description Whose values: collection_id, user_id, agent_id, run_id, app_id, session_id, speaker, role, tier, tags, source_type, source, source_reference, title, conflict_status, kind, metadata.<path>. */
            field: string;
            /**
             * @description At most so many values.
             * @default 100
             */
            limit?: number | null;
            /**
             * @description Skip so many.
             * @default 0
             */
            offset?: number | null;
        };
        VerificationAsked: {
            /**
             * @description If the address has an account and is not proved, it is sent a ticket.
             * @constant
             */
            status: "accepted";
        };
        VerificationRequest: {
            /**
             * Format: email
             * @description E-mail address; white space around it and letter case do not count.
             */
            email: string;
        };
        Verified: {
            /** @description The address that is proved. */
            email: string;
            /**
             * @description Always true.
             * @constant
             */
            email_verified: true;
        };
        VerifyEmail: {
            /** @description The ticket that was mailed. */
            token: string;
        };
        Version: {
            /** @description The version's number. */
            version: number;
            /**
             * @description How it came about.
             * @enum {string}
             */
            event: "ADD" | "UPDATE" | "SUPERSEDE" | "DELETE";
            /** @description The text. */
            content: string;
            /** @description 0 to 1. */
            importance: number;
            /** @description Free JSON object. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description When it was stored (ISO 8601). */
            at: string;
            /** @description The API key's id, the account's for an access token, or `system`; behind `imported:` where an export says so that this installation has not made. */
            actor: string;
            /** @description Why, where one was given. */
            reason: string | null;
        };
        Webhook: {
            /** @description The webhook's id. */
            id: string;
            /** @description Where it delivers to. */
            url: string;
            /** @description The kinds of events it takes. */
            events: ("memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed")[];
            /** @description What it is for. */
            description: string | null;
            /**
             * @description A disabled webhook delivers nothing; its events are kept as skipped.
             * @enum {string}
             */
            status: "active" | "disabled";
            /** @description Why it is disabled. */
            disabled_reason: string | null;
            /** @description When it was created (ISO 8601). */
            created_at: string;
            /** @description When it was last changed (ISO 8601). */
            updated_at: string;
            /** @description When it last took an event with a 2xx. */
            last_delivery_at: string | null;
            /** @description Failed attempts since then. */
            failure_count: number;
        };
        WebhookReplacement: {
            /** @description Where to deliver to: a public http or https address. */
            url: string;
            /** @description The kinds of events to deliver. */
            events: ("memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed")[];
            description?: string | null;
            /**
             * @description active forgets earlier failures.
             * @default active
             */
            status?: ("active" | "disabled") | null;
        };
        WebhookWithSecret: {
            /** @description The webhook's id. */
            id: string;
            /** @description Where it delivers to. */
            url: string;
            /** @description The kinds of events it takes. */
            events: ("memory.created" | "memory.updated" | "memory.deleted" | "memory.tier_changed" | "document.created" | "document.processed" | "document.failed" | "document.deleted" | "collection.created" | "collection.updated" | "search.completed" | "user.feedback_received" | "rl.training_started" | "rl.training_completed" | "rl.training_failed" | "billing.suspended" | "billing.resumed")[];
            /** @description What it is for. */
            description: string | null;
            /**
             * @description A disabled webhook delivers nothing; its events are kept as skipped.
             * @enum {string}
             */
            status: "active" | "disabled";
            /** @description Why it is disabled. */
            disabled_reason: string | null;
            /** @description When it was created (ISO 8601). */
            created_at: string;
            /** @description When it was last changed (ISO 8601). */
            updated_at: string;
            /** @description When it last took an event with a 2xx. */
            last_delivery_at: string | null;
            /** @description Failed attempts since then. */
            failure_count: number;
            /** @description Verifies deliveries. It is shown this once. */
            signing_secret: string;
        };
        WorstCase: {
            lower: number;
            upper: number;
        };
        WriteResult: {
            /** @description The memory's id. */
            id: string;
            /** @description The same. */
            memory_id: string;
            /**
             * @description What happened to it.
             * @enum {string}
             */
            event: "ADD" | "UPDATE" | "NOOP";
            /** @description Its text. */
            memory: string;
            /**
             * @description `completed` when it is searchable.
             * @enum {string}
             */
            processing_status: "processing" | "completed" | "failed";
        };
        plugins__billing__Received: {
            /** @description Always true; what the report was about is nobody else's business. */
            received: boolean;
        };
        plugins__collections__AllDeleted: {
            /** @description Collections deleted; the default collection stays, emptied. */
            deleted: number;
        };
        plugins__collections__BulkDelete: {
            /** @description Collections to delete. */
            ids: string[];
        };
        plugins__collections__BulkDeleted: {
            /** @description Collections deleted. */
            deleted: number;
            /** @description Ids that name no collection of this account. */
            not_found: number;
            /** @description One entry for each id, in order. */
            results: components["schemas"]["plugins__collections__BulkResult"][];
        };
        plugins__collections__BulkResult: {
            /** @description The id as it was sent. */
            id: string;
            /**
             * @description forbidden: the default collection, or another account's.
             * @enum {string}
             */
            status: "deleted" | "not_found" | "forbidden";
        };
        plugins__feedback__Received: {
            /** @description The feedback's id. */
            id: string;
            /** @enum {string} */
            kind: "relevance" | "ranking" | "missing";
            created_at: string;
        };
        plugins__memory_views__AllDeleted: {
            /** @description Memories deleted. */
            deleted: number;
        };
        plugins__memory_views__BulkDelete: {
            /** @description Memories to delete. */
            ids: string[];
        };
        plugins__memory_views__BulkDeleted: {
            /** @description Memories deleted. */
            deleted: number;
            /** @description Ids that name no memory of this account. */
            not_found: number;
            /** @description One entry per id, in order. */
            results: components["schemas"]["plugins__memory_views__BulkResult"][];
        };
        plugins__memory_views__BulkResult: {
            /** @description The id as it was sent. */
            id: string;
            /**
             * @description forbidden: another account's.
             * @enum {string}
             */
            status: "deleted" | "not_found" | "forbidden";
        };
        plugins__memory_views__Deleted: {
            /** @description The memory's id. */
            id: string;
            /**
             * @description It can no longer be read or found.
             * @constant
             */
            deleted: true;
        };
        plugins__profile__Deleted: {
            deleted: boolean;
        };
    };
    responses: never;
    parameters: {
        /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
        XRequestId: string;
        /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
        IdempotencyKey: string;
        /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
        Prefer: string;
        /** @description The version the change is meant for, such as `"3"`, or `*`. */
        IfMatch: string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "service.docs": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
        };
    };
    "service.metrics": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
        };
    };
    "service.openapi": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
        };
    };
    "account.erase": {
        parameters: {
            query: {
                /** @description Must be `erase-account`. */
                confirm: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erased"];
                };
            };
        };
    };
    "account.export": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Record"];
                };
            };
        };
    };
    "account.export_part": {
        parameters: {
            query?: {
                /** @description `next_cursor` of the part before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Part"];
                };
            };
        };
    };
    "account.import": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Import"];
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Imported"];
                };
            };
        };
    };
    "account.import_part": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportPart"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Imported"];
                };
            };
        };
    };
    "account.receipts": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_CleanupReceipt_"];
                };
            };
        };
    };
    "account.erasure": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReceiptText"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
        };
    };
    "auth.api_keys.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ListedApiKey_"];
                };
            };
        };
    };
    "auth.api_keys.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewApiKey"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MintedApiKey"];
                };
            };
        };
    };
    "auth.api_keys.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; there is no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "auth.invitation.request": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvitationRequest"];
            };
        };
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationAsked"];
                };
            };
        };
    };
    "auth.login": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Login"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    "auth.logout": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; there is no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "auth.me": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    "auth.password": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPassword"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionsEnded"];
                };
            };
        };
    };
    "auth.password_reset.request": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResetRequest"];
            };
        };
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResetAsked"];
                };
            };
        };
    };
    "auth.password_reset.confirm": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reset"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionsEnded"];
                };
            };
        };
    };
    "auth.register": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Registration"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    "auth.sessions.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ListedSession_"];
                };
            };
        };
    };
    "auth.sessions.delete_others": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionsEnded"];
                };
            };
        };
    };
    "auth.sessions.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; there is no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "auth.totp.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Secret"];
                };
            };
        };
    };
    "auth.totp.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CodeGiven"];
            };
        };
        responses: {
            /** @description Done; there is no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "auth.totp.confirm": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CodeGiven"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Confirmed"];
                };
            };
        };
    };
    "auth.verify_email": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerifyEmail"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Verified"];
                };
            };
        };
    };
    "auth.verification.request": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerificationRequest"];
            };
        };
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VerificationAsked"];
                };
            };
        };
    };
    "billing.downgrade": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Change"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Subscription"];
                };
            };
        };
    };
    "billing.invoices.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Invoice_"];
                };
            };
        };
    };
    "billing.invoices.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoice"];
                };
            };
        };
    };
    "billing.invoices.page": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html; charset=utf-8": components["schemas"]["InvoiceHtml"];
                };
            };
        };
    };
    "billing.stripe_events": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__billing__Received"];
                };
            };
        };
    };
    "billing.subscription": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Subscription"];
                };
            };
        };
    };
    "billing.tiers": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Tier_"];
                };
            };
        };
    };
    "billing.upgrade": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Change"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upgraded"];
                };
            };
        };
    };
    "chat.completions": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatReply"];
                    "text/event-stream": string;
                };
            };
        };
    };
    "collections.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only collections of exactly this name. */
                name?: string;
                /** @description Only collections whose name starts with this. */
                name_prefix?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Collection_"];
                };
            };
        };
    };
    "collections.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCollection"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
        };
    };
    "collections.delete_all": {
        parameters: {
            query: {
                /** @description Must be `delete-all-collections`. */
                confirm: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__collections__AllDeleted"];
                };
            };
        };
    };
    "collections.bulk_delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["plugins__collections__BulkDelete"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__collections__BulkDeleted"];
                };
            };
        };
    };
    "collections.get_default": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
        };
    };
    "collections.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
        };
    };
    "collections.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description The version the change is meant for, such as `"3"`, or `*`. */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedCollection"];
                };
            };
        };
    };
    "collections.update": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description The version the change is meant for, such as `"3"`, or `*`. */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CollectionPatch"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
        };
    };
    "confidence.get": {
        parameters: {
            query: {
                /** @description What is to be done, in plain words. */
                query: string;
                /** @description Only decisions under this policy. */
                policy_key?: string;
                /** @description Only decisions that took this action. */
                action_key?: string;
                /** @description JSON: what the decision depends on. */
                context?: string;
                /** @description Only this end user's decisions and corrections. */
                user_id?: string;
                /** @description Another name for user_id. */
                end_user_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Confidence"];
                };
            };
        };
    };
    "search.context": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContextBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContextReply"];
                };
            };
        };
    };
    "corrections.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only this type. */
                correction_type?: "preference" | "factual" | "procedural";
                /** @description Only this collection. */
                collection_id?: string;
                /** @description Only this end user. */
                user_id?: string;
                /** @description Only this agent. */
                agent_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Correction_"];
                };
            };
        };
    };
    "corrections.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCorrection"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Correction"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Correction"];
                };
            };
        };
    };
    "corrections.relevant": {
        parameters: {
            query: {
                /** @description The task, in plain words. */
                query: string;
                /** @description Only this type. */
                correction_type?: "preference" | "factual" | "procedural";
                /** @description Only this collection. */
                collection_id?: string;
                /** @description Only this end user. */
                user_id?: string;
                /** @description At most so many. */
                limit?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelevantCorrections"];
                };
            };
        };
    };
    "corrections.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Correction"];
                };
            };
        };
    };
    "corrections.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedCorrection"];
                };
            };
        };
    };
    "decisions.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only this type. */
                decision_type?: string;
                /** @description Only this outcome. */
                outcome?: "success" | "failure" | "partial";
                /** @description Only this collection. */
                collection_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_LoggedDecision_"];
                };
            };
        };
    };
    "decisions.log": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewLogged"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedDecision"];
                };
            };
        };
    };
    "decisions.log.alias1": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewLogged"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedDecision"];
                };
            };
        };
    };
    "decisions.similar": {
        parameters: {
            query: {
                /** @description The decision at hand, in plain words. */
                query: string;
                /** @description Only this type. */
                decision_type?: string;
                /** @description Only this collection. */
                collection_id?: string;
                /** @description At most so many. */
                limit?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SimilarDecisions"];
                };
            };
        };
    };
    "decisions.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedDecision"];
                };
            };
        };
    };
    "documents.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only documents of this collection. */
                collection_id?: string;
                /** @description Only documents in this state. */
                status?: "pending" | "processing" | "completed" | "failed";
                /** @description Only documents with this content. */
                sha256?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Document_"];
                };
            };
        };
    };
    "documents.upload": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": components["schemas"]["NewDocument"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Uploaded"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Uploaded"];
                };
            };
        };
    };
    "documents.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Document"];
                };
            };
        };
    };
    "documents.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedDocument"];
                };
            };
        };
    };
    "documents.chunks": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Chunk_"];
                };
            };
        };
    };
    "documents.content": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": components["schemas"]["DocumentContent"];
                };
            };
        };
    };
    "documents.text": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["DocumentText"];
                };
            };
        };
    };
    "feedback.missing": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Missing"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__feedback__Received"];
                };
            };
        };
    };
    "feedback.ranking": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Ranking"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__feedback__Received"];
                };
            };
        };
    };
    "feedback.relevance": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Relevance"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__feedback__Received"];
                };
            };
        };
    };
    "feedback.stats": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
        };
    };
    "service.health": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    "graph.contradictions": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only contradictions about this entity. */
                entity?: string;
                /** @description Only those this memory takes part in. */
                memory_id?: string;
                /** @description Only those about entities of this collection. */
                collection_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Contradiction_"];
                };
            };
        };
    };
    "graph.entities.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only entities of this type. */
                entity_type?: string;
                /** @description Only entities whose name starts with this. */
                name_prefix?: string;
                /** @description Only entities of this collection. */
                collection_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Entity_"];
                };
            };
        };
    };
    "graph.entities.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewEntity"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedEntity"];
                };
            };
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedEntity"];
                };
            };
        };
    };
    "graph.entities.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The entity name. */
                entity_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntityDetails"];
                };
            };
        };
    };
    "graph.entities.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The entity name. */
                entity_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedOfGraph"];
                };
            };
        };
    };
    "graph.entities.merge": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The entity name. */
                entity_name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntityMerge"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MergedEntity"];
                };
            };
        };
    };
    "graph.query": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["GraphQuery"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GraphAnswer"];
                };
            };
        };
    };
    "graph.relationships.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRelationship"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedRelationship"];
                };
            };
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedRelationship"];
                };
            };
        };
    };
    "graph.relationships.delete": {
        parameters: {
            query?: {
                relationship_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RelationshipChoice"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedOfGraph"];
                };
            };
        };
    };
    "graph.stats": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GraphStats"];
                };
            };
        };
    };
    "graph.timeline": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only relationships of this type. */
                relation_type?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The entity name. */
                entity_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Relationship_"];
                };
            };
        };
    };
    "learning.decide": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDecision"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Decided"];
                };
            };
        };
    };
    "learning.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecisionEvidence"];
                };
            };
        };
    };
    "learning.report": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewOutcome"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OutcomeRecorded"];
                };
            };
        };
    };
    "learning.policies": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Policy_"];
                };
            };
        };
    };
    "learning.evaluate": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The key. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Evaluate"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Evaluation"];
                };
            };
        };
    };
    "learning.insights": {
        parameters: {
            query?: {
                /** @description Only these actions; repeatable. */
                action_key?: string[];
                /** @description JSON: only decisions with these items. */
                context?: string;
                /** @description Only decisions of this collection. */
                collection_id?: string;
                /** @description Only decisions of this end user. */
                user_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The key. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Insights"];
                };
            };
        };
    };
    "memories.list": {
        parameters: {
            query?: {
                /** @description Only this collection. */
                collection_id?: string;
                /** @description Only this end user. */
                user_id?: string;
                /** @description Only this agent. */
                agent_id?: string;
                /** @description Only this run. */
                run_id?: string;
                /** @description Only this application. */
                app_id?: string;
                /** @description Only this session. */
                session_id?: string;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only this tier. */
                tier?: "short_term" | "long_term" | "archived";
                /** @description Only memories with this tag. */
                tag?: string;
                /** @description Only memories created after this instant. */
                created_after?: string;
                /** @description Only memories created before this instant; of a date without a time, before that day. */
                created_before?: string;
                /** @description Include memories that newer ones have superseded. */
                include_superseded?: boolean;
                /** @description `all`: every collection, as when collection_id is absent. */
                scope?: "all";
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Memory_"];
                };
            };
        };
    };
    "memories.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMemory"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
        };
    };
    "memories.delete_all": {
        parameters: {
            query: {
                /** @description Only this collection. */
                collection_id?: string;
                /** @description Only this end user. */
                user_id?: string;
                /** @description Only this agent. */
                agent_id?: string;
                /** @description Only this run. */
                run_id?: string;
                /** @description Only this application. */
                app_id?: string;
                /** @description Only this session. */
                session_id?: string;
                /** @description Must be `delete-all-memories`. */
                confirm: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__memory_views__AllDeleted"];
                };
            };
        };
    };
    "memories.audit": {
        parameters: {
            query?: {
                /** @description Only this collection. */
                collection_id?: string;
                /** @description Only this end user. */
                user_id?: string;
                /** @description Only this agent. */
                agent_id?: string;
                /** @description Only this run. */
                run_id?: string;
                /** @description Only this application. */
                app_id?: string;
                /** @description Only this session. */
                session_id?: string;
                /** @description Cosine from which two memories are near duplicates. */
                similarity?: number;
                /** @description Days after which a memory that was never used is stale. */
                stale_days?: number;
                /** @description At most so many groups, and so many stale memories. */
                limit?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Audit"];
                };
            };
        };
    };
    "memories.create_batch": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Batch"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchCreated"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchCreated"];
                };
            };
        };
    };
    "memories.bulk_delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["plugins__memory_views__BulkDelete"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__memory_views__BulkDeleted"];
                };
            };
        };
    };
    "memories.delete_matching": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Doomed"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__memory_views__AllDeleted"];
                };
            };
        };
    };
    "memories.import": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportedLines"];
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["LineOutcome"];
                };
            };
        };
    };
    "memories.jobs.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only jobs in this state. */
                status?: "queued" | "processing" | "completed" | "failed";
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_MemoryJob_"];
                };
            };
        };
    };
    "memories.jobs.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The job id. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryJob"];
                };
            };
        };
    };
    "memories.jobs.undo": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The job id. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Undone"];
                };
            };
        };
    };
    "memories.merge": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Merge"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Merged"];
                };
            };
        };
    };
    "memories.process": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProcessBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ingestion"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ingestion"];
                };
            };
        };
    };
    "memories.query": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MemoriesQuery"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoriesFound"];
                };
            };
        };
    };
    "memories.create_raw": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RawMemory"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memories.scopes": {
        parameters: {
            query?: {
                /** @description Only this kind. */
                kind?: "user" | "agent" | "app" | "run";
                /** @description At most so many. */
                limit?: number;
                /** @description Skip so many. */
                offset?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScopesFound"];
                };
            };
        };
    };
    "memories.values": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ValuesQuery"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValuesFound"];
                };
            };
        };
    };
    "memories.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memories.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description The version the change is meant for, such as `"3"`, or `*`. */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__memory_views__Deleted"];
                };
            };
        };
    };
    "memories.update": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
                /** @description The version the change is meant for, such as `"3"`, or `*`. */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryPatch"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memories.history": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Version_"];
                };
            };
        };
    };
    "memories.merged": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Memory_"];
                };
            };
        };
    };
    "memories.restore": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memories.jobs.get.alias1": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The job id. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryJob"];
                };
            };
        };
    };
    "memory_files.execute": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryCommand"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryOutput"];
                };
            };
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryOutput"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryOutput"];
                };
            };
        };
    };
    "memory_tools.insert": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RawMemory"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memory_tools.replace": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Replace"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "memory_tools.rethink": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rethink"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Memory"];
                };
            };
        };
    };
    "chat.models": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AvailableModels"];
                };
            };
        };
    };
    "profile.get": {
        parameters: {
            query?: {
                /** @description The end user; absent: nobody in particular. */
                user_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    "profile.delete": {
        parameters: {
            query?: {
                /** @description The end user; absent: nobody in particular. */
                user_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["plugins__profile__Deleted"];
                };
            };
        };
    };
    "profile.update": {
        parameters: {
            query?: {
                /** @description The end user; absent: nobody in particular. */
                user_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProfilePatch"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    "profile.dialectic": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DialecticBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DialecticReply"];
                };
            };
        };
    };
    "rl.jobs.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The job id. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
        };
    };
    "rl.metrics": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Metrics"];
                };
            };
        };
    };
    "rl.rollback": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rollback"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Metrics"];
                };
            };
        };
    };
    "rl.train": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Train"];
            };
        };
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Accepted"];
                };
            };
        };
    };
    "search.search": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SearchBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchReply"];
                };
            };
        };
    };
    "search.advanced": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AdvancedBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdvancedReply"];
                };
            };
        };
    };
    "search.graph": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GraphSearch"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GraphSearchReply"];
                };
            };
        };
    };
    "search.reason": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReasonBody"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReasonReply"];
                };
            };
        };
    };
    "search.similar": {
        parameters: {
            query?: {
                /** @description At most so many results. */
                limit?: number;
                /** @description Only memories of this collection. */
                collection_id?: string;
                /** @description Leave out results whose normalized_score is lower. */
                min_score?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchReply"];
                };
            };
        };
    };
    "usage.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
        };
    };
    "usage.history": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Leave out what ended by then; the beginning, when absent. */
                from?: string;
                /** @description Leave out what began then or later; of a date without a time, what began after that day; now, when absent. */
                to?: string;
                /** @description Length of an item. */
                granularity?: "hour" | "day" | "month";
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_HistoryItem_"];
                };
            };
        };
    };
    "usage.latency": {
        parameters: {
            query?: {
                /** @description Of so many hours, the running one included. */
                hours?: number;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Latencies"];
                };
            };
        };
    };
    "usage.load": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Load"];
                };
            };
        };
    };
    "webhooks.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Webhook_"];
                };
            };
        };
    };
    "webhooks.create": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Created, and ready. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    "webhooks.dead_letters.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only those of this webhook. */
                webhook_id?: string;
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Delivery_"];
                };
            };
        };
    };
    "webhooks.dead_letters.replay": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplayMany"];
            };
        };
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replayed"];
                };
            };
        };
    };
    "webhooks.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    "webhooks.update": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookReplacement"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    "webhooks.delete": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedWebhook"];
                };
            };
        };
    };
    "webhooks.deliveries.list": {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the page before. */
                cursor?: string;
                /** @description Only deliveries in this state. */
                status?: "pending" | "retrying" | "delivered" | "failed" | "skipped";
            };
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Delivery_"];
                };
            };
        };
    };
    "webhooks.deliveries.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
                /** @description The delivery id. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryDetail"];
                };
            };
        };
    };
    "webhooks.deliveries.replay": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
                /** @description The delivery id. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    "webhooks.rotate_secret": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Rotation"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotatedWebhook"];
                };
            };
        };
    };
    "webhooks.test": {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters; they come back, or a new one does. */
                "X-Request-ID"?: components["parameters"]["XRequestId"];
                /** @description Makes a retry safe: the same key with the same request takes effect once. With another request it is 409. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path: {
                /** @description The id of the resource. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestEvent"];
                };
            };
        };
    };
    "event.collection.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "collection.created";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["CollectionChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.collection.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "collection.updated";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["CollectionChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.memory.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "memory.created";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["MemoryCreated"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.memory.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "memory.updated";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["MemoryUpdated"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.memory.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "memory.deleted";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["MemoryDeleted"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.search.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "search.completed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["SearchCompleted"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.document.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "document.created";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["DocumentChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.document.processed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "document.processed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["DocumentChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.document.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "document.failed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["DocumentChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.document.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "document.deleted";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["DocumentChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.billing.suspended": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "billing.suspended";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["Standing"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.billing.resumed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "billing.resumed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["Standing"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.memory.tier_changed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "memory.tier_changed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["TierChanged"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.user.feedback_received": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "user.feedback_received";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["FeedbackReceived"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.rl.training_started": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "rl.training_started";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["TrainingEvent"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.rl.training_completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "rl.training_completed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["TrainingEvent"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "event.rl.training_failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The event's id. */
                    id: string;
                    /** @constant */
                    event_type: "rl.training_failed";
                    /** @description When it happened, seconds since 1970; the same in every attempt. */
                    timestamp: number;
                    data: components["schemas"]["TrainingEvent"];
                    /** @description The same in every attempt and replay; deduplicate by it. */
                    idempotency_key: string;
                };
            };
        };
        responses: {
            /** @description Taken. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
