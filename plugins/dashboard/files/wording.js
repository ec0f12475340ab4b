// What an error says, in the words of a page: the API names its operations and counts in seconds.

import { span } from "./format.js";

// Operation -> the view, and its address, that does the same.
const VIEWS = {
  "GET /v1/webhooks": ["Webhooks", "/webhooks"],
  "PUT /v1/webhooks/{id}": ["Webhooks", "/webhooks"],
  "GET /v1/collections": ["Collections", "/collections"],
  "GET /v1/auth/sessions": ["Sessions", "/sessions"],
  "GET /v1/auth/api-keys": ["API keys", "/keys"],
  "DELETE /v1/auth/api-keys/{id}": ["API keys", "/keys"],
  "POST /v1/auth/totp": ["Settings", "/settings"],
  "DELETE /v1/auth/totp": ["Settings", "/settings"],
  "POST /v1/auth/login": ["Sign in", "/sign-in"],
  "POST /v1/auth/password-reset": ["Forgot your password?", "/sign-in?forgotten"],
  "POST /v1/auth/verify-email/request": ["Settings", "/settings"],
  "POST /v1/auth/invitation-request": ["Sign up", "/sign-in?new"],
  "GET /v1/billing/invoices": ["Billing", "/billing"],
  "GET /v1/billing/tiers": ["Billing", "/billing"],
};
const RESTORE = /^POST \/v1\/memories\/(mem_\w+)\/restore$/;
const OPERATION = /(with |at )?((?:GET|POST|PUT|DELETE) \/v1\/[\w/{}-]*[\w}])/g;
const SECONDS = /\b(\d+) s(?:econds)?\b/g;
const STILL_RUNNING = "What was asked before is still being done. Ask again in a moment.";

// -> texts, and [label, path] for each link to a view.
export function worded(error) {
  const { message, param, retryAfter } = error;
  if (param === "Idempotency-Key" && retryAfter) return [STILL_RUNNING];
  const timed = message.replace(SECONDS, (_, seconds) => span(Number(seconds)));
  const parts = [];
  let at = 0;
  for (const { 0: all, 1: preposition, 2: operation, index } of timed.matchAll(OPERATION)) {
    const view = viewOf(operation);
    if (!view) continue;
    parts.push(timed.slice(at, index) + (preposition ? "under " : ""), view);
    at = index + all.length;
  }
  parts.push(timed.slice(at));
  if (retryAfter && !message.match(SECONDS)) parts.push(` Wait ${span(Number(retryAfter))}.`);
  return parts.filter((part) => part.length);
}

function viewOf(operation) {
  const restored = RESTORE.exec(operation);
  return restored ? ["its page", `/memories/${restored[1]}`] : Object.hasOwn(VIEWS, operation) && VIEWS[operation];
}
