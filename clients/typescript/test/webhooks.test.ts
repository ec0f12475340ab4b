/** verifyWebhook takes what the service signed, in either form, and nothing else. */
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

import { describe, expect, inject, test } from "vitest";

import { Mneme, NotGenuine, verifyWebhook } from "../src/index.js";

const NEW = `whsec_${"C".repeat(43)}`;
const OLD = `whsec_-_${"D".repeat(41)}`;
const OF_OWN = "a secret of the caller's own";
const BODY = '{"event_type": "memory.created", "data": {"id": "mem_1", "content": "Grüße"}}';
const NOW = 1_790_000_000;
const FORMS = ["own", "standard"] as const;

type Form = (typeof FORMS)[number];

/** What another implementation of HMAC signs. */
function signed(form: Form, secrets: string[], body = BODY, stamp = NOW): Record<string, string> {
  const mac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text);
  if (form === "own") {
    const [first, second] = secrets.map(
      (secret) => `sha256=${mac(secret, `${stamp}.${body}`).digest("hex")}`,
    );
    return {
      "X-Webhook-Timestamp": `${stamp}`,
      "X-Webhook-Signature-256": first!,
      ...(second ? { "X-Webhook-Signature-256-Previous": second } : {}),
    };
  }
  const signatures = secrets.map((secret) => {
    const key = secret.startsWith("whsec_")
      ? Buffer.from(secret.slice("whsec_".length), "base64")
      : secret;
    return `v1,${mac(key, `evt_1.${stamp}.${body}`).digest("base64")}`;
  });
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": `${stamp}`,
    "webhook-signature": signatures.join(" "),
  };
}

describe.each(FORMS)("the %s form", (form) => {
  test.each([NEW, OLD, OF_OWN])("what is signed is taken: %s", async (secret) => {
    const headers = signed(form, [secret]);
    const event = await verifyWebhook(BODY, headers, secret, { now: NOW });
    expect(event.data).toMatchObject({ id: "mem_1", content: "Grüße" });
    const bytes = new TextEncoder().encode(BODY);
    const several = [`${OF_OWN}2`, secret];
    for (const body of [bytes, bytes.buffer]) {
      const later = { now: NOW + 300 };
      expect(await verifyWebhook(body, new Headers(headers), several, later)).toEqual(event);
    }
  });

  test("during a rotation either secret does", async () => {
    const headers = signed(form, [NEW, OLD]);
    for (const secret of [NEW, OLD]) {
      await verifyWebhook(BODY, headers, secret, { now: NOW });
    }
  });

  test("everything else is refused", async () => {
    const headers = signed(form, [NEW]);
    const stamps = ["X-Webhook-Timestamp", "webhook-timestamp"];
    const stamped = (stamp: string) => ({
      ...headers,
      ...Object.fromEntries(stamps.filter((name) => name in headers).map((name) => [name, stamp])),
    });
    const signature = (own: string, standard: string) => ({
      ...headers,
      ...(form === "own" ? { "X-Webhook-Signature-256": own } : { "webhook-signature": standard }),
    });
    const cases: [string, Record<string, string>, string | string[], number][] = [
      [`${BODY} `, headers, NEW, NOW],
      [BODY, headers, OLD, NOW],
      [BODY, headers, NEW, NOW + 301],
      [BODY, headers, NEW, NOW - 301],
      [BODY, stamped(`${NOW + 1}`), NEW, NOW],
      [BODY, stamped("١٢"), NEW, NOW],
      [BODY, stamped("9".repeat(40)), NEW, NOW],
      [BODY, signature("", ""), NEW, NOW],
      [BODY, signature("sha256=ü", "v1,ü v2"), NEW, NOW],
      [BODY, {}, NEW, NOW],
      [BODY, headers, [], NOW],
      [BODY, headers, "", NOW],
    ];
    for (const [body, given, secret, now] of cases) {
      await expect(verifyWebhook(body, given, secret, { now })).rejects.toBeInstanceOf(NotGenuine);
    }
  });
});

test("the tolerance is the caller's choice", async () => {
  const headers = signed("own", [NEW]);
  await verifyWebhook(BODY, headers, NEW, { now: NOW + 900, toleranceSeconds: 1_000 });
  const late = verifyWebhook(BODY, headers, NEW, { now: NOW + 11, toleranceSeconds: 10 });
  await expect(late).rejects.toThrow("more than 10 seconds");
});

test("a signed body that is no JSON is refused", async () => {
  const headers = signed("own", [NEW], "hello");
  await expect(verifyWebhook("hello", headers, NEW, { now: NOW })).rejects.toThrow("no JSON");
});

test("what the service sends is genuine, and names what happened", async () => {
  const client = new Mneme({ baseUrl: inject("url"), apiKey: inject("key") });
  const heard: { body: Buffer; headers: Headers }[] = [];
  const server = createServer(async (request, response) => {
    heard.push({ body: await buffer(request), headers: new Headers(request.headers as never) });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const webhook = await client.webhooks.create({ url, events: ["memory.created"] });
  try {
    const memory = await client.memories.create({ content: "Ada plays the cello." });
    await expect.poll(() => heard.length, { timeout: 30_000 }).toBeGreaterThan(0);
    const { body, headers } = heard[0]!;
    const event = await verifyWebhook(new Uint8Array(body), headers, webhook.signing_secret);
    if (event.event_type !== "memory.created") {
      throw new Error(`It is ${event.event_type}.`);
    }
    expect(event.data.id).toBe(memory.id);
    const other = verifyWebhook(new Uint8Array(body), headers, `${webhook.signing_secret}x`);
    await expect(other).rejects.toBeInstanceOf(NotGenuine);
  } finally {
    await client.webhooks.delete(webhook.id);
    server.close();
  }
});
