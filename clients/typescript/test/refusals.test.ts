/**
 * What is refused before anything is sent, and answers that are not this service's: errors of the
 * client's own.
 */
import { gzipSync } from "node:zlib";

import { describe, expect, test } from "vitest";

import { ApiError, Mneme, UnreadableAnswer } from "../src/index.js";
import { answers, withEndpoint, type Act, type Endpoint } from "./endpoint.js";

const PAGE = { items: [], next_cursor: null, has_more: false, total_count: 0 };
const MESSAGES = [{ role: "user", content: "x" }];
const EVENTS = { "Content-Type": "text/event-stream" };
const LINES = { "Content-Type": "application/x-ndjson" };
const BROKEN = { "Content-Encoding": "gzip" };

function calling(service: Endpoint, apiKey?: string): Mneme {
  return new Mneme({ baseUrl: service.url, apiKey, retries: { attemptsMax: 1 } });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}

describe("an id that is an empty text, which would mean everybody's, is refused", () => {
  test.each(["user_id", "session_id", "collection_id"])("%s", async (name) => {
    await withEndpoint([answers(PAGE)], async (service) => {
      const client = calling(service);
      for (const empty of ["", " "]) {
        const who = { [name]: empty };
        for (const call of [
          () => client.memories.list(who).page(),
          () => client.memories.deleteMatching({ filters: { tags: "x" }, ...who }),
          () => client.memories.deleteAll({ confirm: "delete-all-memories", ...who }),
          () => client.search({ query: "tea", ...who }),
        ]) {
          await expect(call()).rejects.toThrow(`${name} is an empty text`);
        }
      }
      await expect(client.memories.list({ tag: "" }).page()).rejects.toThrow("tag is an empty");
      const nothing = undefined as unknown as string;
      await expect(client.memories.get(nothing)).rejects.toThrow("An id is a text");
      expect(service.received).toHaveLength(0);
    });
  });
});

test("a number that JSON does not have is refused by its name", async () => {
  await withEndpoint([answers({})], async (service) => {
    for (const importance of [NaN, Infinity]) {
      const call = calling(service).memories.create({ content: "x", importance });
      await expect(call).rejects.toThrow(`importance is ${importance}`);
    }
    expect(service.received).toHaveLength(0);
  });
});

test("the space around a key is no part of it", async () => {
  await withEndpoint([answers({})], async (service) => {
    const client = calling(service, " mem_sk_1\r\n");
    await client.memories.create({ content: "x" }, { idempotencyKey: " mine\n" });
    const { authorization, "idempotency-key": key } = service.received[0]!.headers;
    expect([authorization, key]).toEqual(["Bearer mem_sk_1", "mine"]);
  });
});

test.each(["mem_sk_secret\nx", "mem_sk_secreté", "mem_sk_secret\0", "\n"])(
  "a key that no header can hold is refused and not shown: %j",
  async (key) => {
    const refused = /^(apiKey|idempotencyKey) (is an empty|holds a character)(?!.*secret)/;
    expect(() => new Mneme({ apiKey: key })).toThrow(refused);
    const call = new Mneme().memories.create({ content: "x" }, { idempotencyKey: key });
    await expect(call).rejects.toThrow(refused);
  },
);

test.each(["", "/v1", "/v1/", "/", " ", "/behind/v1\n"])(
  "an address may have the path of the interface: %j",
  async (end) => {
    await withEndpoint([answers({})], async (service) => {
      await new Mneme({ baseUrl: service.url + end }).memories.get("mem_1");
      const above = end.startsWith("/behind") ? "/behind" : "";
      expect(service.received[0]!.path).toBe(`${above}/v1/memories/mem_1`);
    });
  },
);

test.each(["", "localhost:8000", "http://127.0.0.1:port"])("%j is no address", (baseUrl) => {
  expect(() => new Mneme({ baseUrl })).toThrow("is no address");
});

test.each([301, 302, 307, 308])("a %d is not followed and names the address", async (status) => {
  const there = { Location: "https://memory.example/v1/memories?a=b" };
  await withEndpoint([answers("", status, there)], async (service) => {
    const call = calling(service).memories.create({ content: "tea" });
    await expect(call).rejects.toThrow(
      "lies at https://memory.example/v1/memories, so that baseUrl must be corrected",
    );
    await expect(call).rejects.toBeInstanceOf(ApiError);
    expect(service.received).toHaveLength(1);
  });
});

describe("a success of another server is an error that asks for the address", () => {
  const acts: [string, Act][] = [
    ["html", answers("<html>hello</html>", 200, { "Content-Type": "text/html" })],
    ["nothing", answers("")],
    ["nothing, and its length", answers("", 200, { "Content-Length": "0" })],
    ["a list", answers([])],
    ["a broken gzip", answers("no gzip", 200, BROKEN)],
    ["another object", answers({ ok: 1 })],
  ];

  test.each(acts)("%s", async (name, act) => {
    await withEndpoint([act], async (service) => {
      const client = calling(service);
      const calls = [
        () => client.memories.list().page(),
        () => all(client.memories.list()),
        () => all(client.account.export()),
        () => all(client.chat.streamCompletions({ messages: MESSAGES })),
      ];
      if (name !== "another object") {
        calls.push(() => client.search({ query: "tea" }) as Promise<never>);
      }
      for (const call of calls) {
        const made = call();
        await expect(made).rejects.toBeInstanceOf(UnreadableAnswer);
        await expect(made).rejects.toThrow("is baseUrl right?");
      }
      expect(service.received).toHaveLength(calls.length);
    });
  });

  test.each<[string, string, Record<string, string>]>([
    ["an event that is no JSON", "data: {bad\n\ndata: [DONE]\n\n", EVENTS],
    ["an event that is no object", "data: 7\n\ndata: [DONE]\n\n", EVENTS],
    ["a line that is no JSON", '{"kind": "memory"}\n<html>\n', LINES],
    ["a stream with a broken gzip", "no gzip", { ...EVENTS, ...BROKEN }],
  ])("%s", async (_, body, headers) => {
    await withEndpoint([answers(body, 200, headers)], async (service) => {
      const client = calling(service);
      const stream = headers["Content-Type"]!.includes("ndjson")
        ? all(client.account.export())
        : all(client.chat.streamCompletions({ messages: MESSAGES }));
      await expect(stream).rejects.toBeInstanceOf(UnreadableAnswer);
    });
  });
});

test("a failure that cannot be read is one of the client's too", async () => {
  await withEndpoint([answers("no gzip", 502, BROKEN)], async (service) => {
    const call = calling(service).search({ query: "tea" });
    await expect(call).rejects.toBeInstanceOf(UnreadableAnswer);
  });
});

test("what is compressed as it says is read", async () => {
  const body = gzipSync('{"results": []}');
  const act: Act = (response) => {
    response.writeHead(200, { "Content-Type": "application/json", ...BROKEN });
    response.end(body);
  };
  await withEndpoint([act], async (service) => {
    expect(await calling(service).search({ query: "tea" })).toEqual({ results: [] });
  });
});

test("a stream is read once", async () => {
  await withEndpoint([answers('{"kind": "manifest"}\n', 200, LINES)], async (service) => {
    const stream = calling(service).account.export();
    expect(await all(stream)).toEqual([{ kind: "manifest" }]);
    await expect(all(stream)).rejects.toThrow("can be read once");
    expect(service.received).toHaveLength(1);
  });
});
