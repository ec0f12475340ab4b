/** What is sent again, what is not, and that it is the same call. */
import { createServer, type AddressInfo } from "node:net";

import { describe, expect, test } from "vitest";

import { ApiError, ConnectionFailed, Mneme, RETRIES } from "../src/index.js";
import { retryAfterMs } from "../src/errors.js";
import { waitAfter } from "../src/retries.js";
import {
  answers,
  breaksOff,
  hangsUp,
  refuses,
  stalls,
  withEndpoint,
  type Act,
  type Endpoint,
} from "./endpoint.js";

const SOON = { attemptsMax: 4, firstMs: 1 };
const MEMORY = { id: "mem_1", memory_ids: ["mem_1"] };
const LATER = { "Retry-After": "0" };
const html = { "Content-Type": "text/html" };

function calling(service: Endpoint, timeoutMs = 60_000): Mneme {
  return new Mneme({ baseUrl: service.url, apiKey: "k", retries: SOON, timeoutMs });
}

function keys(service: Endpoint): Set<unknown> {
  return new Set(service.received.map(({ headers }) => headers["idempotency-key"]));
}

const TROUBLES: [string, Act][] = [
  ["hangs up", hangsUp],
  ["half an answer", breaksOff],
  ["503", refuses(503, undefined, LATER)],
  ["429", refuses(429, "rate_limit_exceeded", LATER)],
  ["409 still running", refuses(409, undefined, LATER)],
  ["a proxy's 502", answers("<html>bad gateway</html>", 502, html)],
  ["a proxy's 500", answers("Internal Server Error", 500)],
];

test.each(TROUBLES)("a write is sent again under the same key: %s", async (_, trouble) => {
  await withEndpoint([trouble, trouble, answers(MEMORY, 201)], async (service) => {
    expect(await calling(service).memories.create({ content: "tea" })).toEqual(MEMORY);
    expect(service.received).toHaveLength(3);
    expect([...keys(service)]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(new Set(service.received.map(({ body }) => body)).size).toBe(1);
  });
});

test("what does not answer in time is sent again under the same key", async () => {
  await withEndpoint([stalls(), answers(MEMORY, 201)], async (service) => {
    expect(await calling(service, 300).memories.create({ content: "tea" })).toEqual(MEMORY);
    expect(keys(service).size).toBe(1);
  });
});

test("no attempt begins when the time is over", async () => {
  await withEndpoint([hangsUp], async (service) => {
    const retries = { attemptsMax: 100, firstMs: 1, totalMsMax: 0 };
    const client = new Mneme({ baseUrl: service.url, apiKey: "k", retries });
    await expect(client.memories.get("mem_1")).rejects.toBeInstanceOf(ConnectionFailed);
    expect(service.received).toHaveLength(1);
  });
});

test("patience that is undefined is the default", async () => {
  await withEndpoint([hangsUp], async (service) => {
    const retries = { attemptsMax: undefined, firstMs: 1, waitMsMax: 1 };
    const client = new Mneme({ baseUrl: service.url, apiKey: "k", retries });
    await expect(client.memories.get("mem_1")).rejects.toBeInstanceOf(ConnectionFailed);
    expect(service.received).toHaveLength(RETRIES.attemptsMax);
  });
});

test("each call has a key of its own unless it is given one", async () => {
  await withEndpoint([answers(MEMORY, 201)], async (service) => {
    const client = calling(service);
    await client.memories.create({ content: "tea" });
    await client.memories.create({ content: "tea" });
    await client.memories.create({ content: "tea" }, { idempotencyKey: "mine" });
    expect(keys(service).size).toBe(3);
    expect(keys(service)).toContain("mine");
  });
});

test.each<[string, Act]>([
  ["400", refuses(400, "invalid_request")],
  ["500", refuses(500, "internal_error")],
  ["503 for good", refuses(503)],
  ["409 for good", refuses(409)],
  ["429 until tomorrow", refuses(429, "quota_exceeded", { "Retry-After": "86400" })],
])("what would not pass is not sent again: %s", async (_, trouble) => {
  await withEndpoint([trouble], async (service) => {
    const call = calling(service).memories.create({ content: "tea" });
    await expect(call).rejects.toBeInstanceOf(ApiError);
    expect(service.received).toHaveLength(1);
  });
});

describe("a call without a key that changes something", () => {
  const credentials = { email: "ada@example.com", password: "secret words" };

  test.each([
    ["no answer", hangsUp, ConnectionFailed],
    ["503", refuses(503, undefined, LATER), ApiError],
  ])("is not sent again where it may have happened: %s", async (_, trouble, kind) => {
    await withEndpoint([trouble], async (service) => {
      await expect(calling(service).auth.login(credentials)).rejects.toBeInstanceOf(kind);
      expect(service.received).toHaveLength(1);
      expect(keys(service)).toEqual(new Set([undefined]));
    });
  });

  test("is sent again where it cannot have happened", async () => {
    const session = { access_token: "t" };
    await withEndpoint([refuses(429, undefined, LATER), answers(session)], async (service) => {
      expect(await calling(service).auth.login(credentials)).toEqual(session);
    });
  });
});

test("nobody there is an error after all attempts", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  let attempts = 0;
  const client = new Mneme({
    baseUrl: `http://127.0.0.1:${port}`,
    retries: SOON,
    fetch: (input, init) => {
      attempts += 1;
      return fetch(input, init);
    },
  });
  const call = client.auth.login({ email: "ada@example.com", password: "secret words" });
  await expect(call).rejects.toThrow(/POST \/v1\/auth\/login got no answer: .*ECONNREFUSED/);
  await expect(call).rejects.toMatchObject({ name: "ConnectionFailed", sent: false });
  expect(attempts).toBe(SOON.attemptsMax);
});

test("a file is sent again as it was", async () => {
  const acts = [refuses(503, undefined, LATER), hangsUp, answers({ job_id: "job_1" }, 202)];
  await withEndpoint(acts, async (service) => {
    const file = new Blob(["The offsite is in Porto."]);
    await calling(service).documents.upload(file, { filename: "notes.txt", tags: ["a", "b"] });
    expect(service.received).toHaveLength(3);
    expect(keys(service).size).toBe(1);
    for (const { body } of service.received) {
      expect(body).toContain("\r\n\r\nThe offsite is in Porto.\r\n");
      expect(body).toContain('filename="notes.txt"');
      expect(body).toContain("\r\n\r\na,b\r\n");
    }
  });
});

test("a signal ends a call and its waits, with its own reason", async () => {
  const forever = refuses(503, undefined, { "Retry-After": "30" });
  for (const act of [stalls(), forever]) {
    await withEndpoint([act], async (service) => {
      const controller = new AbortController();
      const call = calling(service).memories.get("mem_1", { signal: controller.signal });
      await expect.poll(() => service.received.length).toBe(1);
      controller.abort(new Error("enough"));
      await expect(call).rejects.toThrow("enough");
      expect(service.received).toHaveLength(1);
    });
  }
});

test("waits grow, spread and end", () => {
  const patience = { ...RETRIES, attemptsMax: 20, firstMs: 250, waitMsMax: 8_000 };
  const lost = new ConnectionFailed("gone", true);
  for (let attempt = 1; attempt < 20; attempt += 1) {
    const longest = Math.min(8_000, 250 * 2 ** (attempt - 1));
    const waits = Array.from({ length: 20 }, () => waitAfter(attempt, lost, true, patience)!);
    expect(new Set(waits).size).toBeGreaterThan(10);
    expect(waits.every((ms) => longest / 2 <= ms && ms <= longest)).toBe(true);
  }
  expect(waitAfter(20, lost, true, patience)).toBeUndefined();
  expect(waitAfter(1, lost, false, patience)).toBeUndefined();
  const asked = (ms: number) =>
    new ApiError("later", { status: 503, type: "server_error", retryAfterMs: ms });
  const waits = Array.from({ length: 20 }, () => waitAfter(1, asked(30_000), true, RETRIES)!);
  expect(waits.every((ms) => 30_000 <= ms && ms <= 37_500)).toBe(true);
  expect(waitAfter(1, asked(61_000), true, RETRIES)).toBeUndefined();
});

test("Retry-After is a number or a date", () => {
  expect(retryAfterMs("7", 0)).toBe(7_000);
  expect(retryAfterMs("Thu, 01 Jan 1970 00:00:09 GMT", 2_000)).toBe(7_000);
  expect(retryAfterMs("Thu, 01 Jan 1970 00:00:09 GMT", 10_000)).toBe(0);
  expect(retryAfterMs("soon", 0)).toBeUndefined();
  expect(retryAfterMs(null, 0)).toBeUndefined();
});

test("a path parameter stays one segment", async () => {
  await withEndpoint([answers({})], async (service) => {
    const client = calling(service);
    await client.graph.entities.get("a/b ?ü");
    expect(service.received[0]!.path).toBe("/v1/knowledge-graph/entities/a%2Fb%20%3F%C3%BC");
    for (const nothing of ["", ".", ".."]) {
      await expect(client.memories.delete(nothing)).rejects.toThrow("names nothing");
    }
    expect(service.received).toHaveLength(1);
  });
});

test("an address is checked before anything is sent to it", () => {
  expect(() => new Mneme({ baseUrl: "localhost:8000" })).toThrow("is no address");
});
