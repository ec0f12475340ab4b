/** The client against the real service: calls, lists, files, streams, waiting, errors. */
import { openAsBlob, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { describe, expect, inject, test } from "vitest";

import {
  ApiError,
  ConnectionFailed,
  DeadlineExceeded,
  Mneme,
  ProcessingFailed,
  type CompletionChunk,
} from "../src/index.js";
import { answers, stalls, withEndpoint } from "./endpoint.js";

const client = new Mneme({
  baseUrl: inject("url"),
  apiKey: inject("key"),
  retries: { attemptsMax: 1 },
});
const QUESTION = [{ role: "user", content: "What must Ada not eat?" }];

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}

function textOf(chunks: CompletionChunk[]): string {
  return chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? "")).join("");
}

async function failure(call: Promise<unknown>): Promise<ApiError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

test("a memory from its creation to its end", async () => {
  const memory = await client.memories.create({
    content: "Ada eats no nuts.",
    user_id: "ada",
    tags: ["food"],
    title: "Diet",
    wait_for_index: true,
  });
  expect(memory.processing_status).toBe("completed");
  const found = await client.search({ query: "nuts", user_id: "ada" });
  expect(found.results.map(({ id }) => id)).toEqual([memory.id]);
  const changed = await client.memories.update(
    memory.id,
    { tags: null },
    { ifMatch: memory.version },
  );
  expect(changed).toMatchObject({ tags: [], title: "Diet" });
  const late = client.memories.update(memory.id, { title: "x" }, { ifMatch: memory.version });
  expect((await failure(late)).status).toBe(412);
  expect(await client.memories.delete(memory.id)).toMatchObject({ deleted: true });
  const gone = await failure(client.memories.get(memory.id));
  expect([gone.status, gone.code]).toEqual([404, "resource_not_found"]);
});

test("a list is walked page by page", async () => {
  const memories = Array.from({ length: 7 }, (_, number) => ({ content: `fact ${number}` }));
  const made = await client.memories.createBatch({ memories, user_id: "pages" });
  const listing = client.memories.list({ user_id: "pages", limit: 3 });
  const ids = (await all(listing)).map(({ id }) => id);
  expect(ids.sort()).toEqual([...made.memory_ids].sort());
  expect((await all(listing.pages())).map(({ items }) => items.length)).toEqual([3, 3, 1]);
  expect((await listing.page()).total_count).toBe(7);
});

test("a listing asks for nothing until it is looked at, and for no page that is not", async () => {
  const page = { items: [1, 2], next_cursor: "c", has_more: true, total_count: 9 };
  await withEndpoint([answers(page)], async (service) => {
    const listing = new Mneme({ baseUrl: service.url }).memories.list({ tag: "a b&c" });
    expect(service.received).toEqual([]);
    for await (const _ of listing) {
      break;
    }
    expect(service.received.map(({ path }) => path)).toEqual(["/v1/memories?tag=a%20b%26c"]);
  });
});

test("files go up from bytes, text and a path, and come back", async () => {
  const path = join(tmpdir(), `handbook-${process.pid}.txt`);
  writeFileSync(path, "The cellar has no window.");
  const uploaded = await client.documents.upload(await openAsBlob(path), {
    filename: "handbook.txt",
    tags: ["house", "kitchen"],
    metadata: { year: 2026 },
  });
  const document = await client.waitDocument(uploaded);
  expect(document).toMatchObject({
    filename: "handbook.txt",
    tags: ["house", "kitchen"],
    metadata: { year: 2026 },
  });
  const content = await client.documents.content(document.id);
  expect(new TextDecoder().decode(content)).toBe("The cellar has no window.");
  const chunks = await all(client.documents.chunks(document.id));
  expect(chunks.map((chunk) => chunk.content)).toEqual(["The cellar has no window."]);
  const file = new File([new TextEncoder().encode("The garden has a pond.")], "garden.txt");
  const garden = await client.waitDocument((await client.documents.upload(file)).document.id);
  expect(await client.documents.text(garden.id)).toBe("The garden has a pond.");
  expect(() => client.documents.upload("no name")).toThrow("needs a filename");
  const two = { filename: "a.txt", tags: ["house", "red, blue"] };
  expect(() => client.documents.upload("labels", two)).toThrow("tags: no comma");
  const broken = await client.documents.upload("%PDF-1.7 and no more", { filename: "b.pdf" });
  await expect(client.waitDocument(broken)).rejects.toBeInstanceOf(ProcessingFailed);
});

test("waiting takes what a create answered", async () => {
  const prefer = "respond-async";
  const one = await client.memories.create({ content: "stored for later" }, { prefer });
  expect((await client.waitReady(one)).id).toBe(one.id);
  expect((await client.waitReady(one.id)).searchable).toBe(true);
  const messages = ["one", "two"].map((content) => ({ role: "user" as const, content }));
  const several = await client.memories.create({ messages }, { prefer });
  expect((await client.waitJob(several)).status).toBe("completed");
});

test("waiting ends at its deadline, and asks nobody else", async () => {
  const answer = { id: "mem_1", processing_status: "processing" };
  await withEndpoint([answers(answer)], async (service) => {
    const slow = new Mneme({ baseUrl: service.url });
    const waited = slow.waitReady("mem_1", { deadlineMs: 200 });
    await expect(waited).rejects.toMatchObject({ name: "DeadlineExceeded", last: answer });
    await expect(waited).rejects.toBeInstanceOf(DeadlineExceeded);
    const elsewhere = { status_url: "https://elsewhere.example/v1/memories/mem_1" };
    await expect(slow.waitReady(elsewhere)).rejects.toThrow("no path of the service");
  });
});

describe("streams", () => {
  test("a completion comes whole or piece by piece", async () => {
    await client.memories.create({
      content: "Ada is allergic to nuts.",
      user_id: "chat",
      wait_for_index: true,
    });
    const asked = { messages: QUESTION, user: "chat", model: "mneme" };
    const whole = await client.chat.completions({ ...asked, temperature: 0 });
    expect(whole.choices[0]!.message["content"]).toBe("Nothing with nuts.");
    expect(whole.memory.injected_ids).toHaveLength(1);
    const chunks = await all(client.chat.streamCompletions(asked));
    expect(textOf(chunks)).toBe("Nothing with nuts.");
    expect(chunks.flatMap(({ memory }) => memory?.injected_ids ?? [])).toEqual(
      whole.memory.injected_ids,
    );
  });

  test("one that fails in the middle says so", async () => {
    const seen: CompletionChunk[] = [];
    const broken = async () => {
      const messages = [{ role: "user", content: "Break off." }];
      for await (const chunk of client.chat.streamCompletions({ messages, model: "mneme" })) {
        seen.push(chunk);
      }
    };
    const error = await failure(broken());
    expect(error.status).toBeGreaterThanOrEqual(500);
    expect(seen.length).toBeGreaterThan(0);
  });

  test("one is read in whatever pieces it comes, and an end before [DONE] is no end", async () => {
    const whole =
      'data: {"text": "one\u2028zwei\u0085 ü"}\r\n\r\n: a comment\n\nevent: x\n' +
      'data: {"text":\ndata: "three"}\n\n';
    for (const [body, fails] of [
      [`${whole}data: [DONE]\n\n`, false],
      [whole, true],
    ] as const) {
      const bytes = new TextEncoder().encode(body);
      const dribble = () =>
        Promise.resolve(
          new Response(
            new ReadableStream({
              start(controller) {
                bytes.forEach((byte) => controller.enqueue(Uint8Array.of(byte)));
                controller.close();
              },
            }),
          ),
        );
      const stream = new Mneme({ fetch: dribble }).chat.streamCompletions({ messages: QUESTION });
      const texts: unknown[] = [];
      const read = (async () => {
        for await (const chunk of stream) {
          texts.push(chunk["text"]);
        }
      })();
      await (fails ? expect(read).rejects.toBeInstanceOf(ConnectionFailed) : read);
      expect(texts).toEqual(["one\u2028zwei\u0085 ü", "three"]);
    }
  });

  test("one that is left early is closed, and one that stalls ends", async () => {
    const beginning = 'data: {"choices": []}\n\n';
    await withEndpoint([stalls(beginning)], async (service) => {
      const slow = new Mneme({ baseUrl: service.url, timeoutMs: 200 });
      for await (const _ of slow.chat.streamCompletions({ messages: QUESTION })) {
        break;
      }
      await expect.poll(service.left).toBe(1);
      const read = all(slow.chat.streamCompletions({ messages: QUESTION }));
      await expect(read).rejects.toThrow("nothing came within 200 ms");
    });
  });

  test("an export is read record by record", async () => {
    const kinds = (await all(client.account.export())).map(({ kind }) => kind);
    expect(kinds.at(-1)).toBe("manifest");
    expect(kinds).toContain("memory");
  });
});

test("errors say what happened, to which request", async () => {
  const invalid = await failure(client.search({ query: "" }));
  expect(invalid).toMatchObject({
    name: "ApiError",
    status: 422,
    code: "validation_error",
    type: "validation_error",
    param: "body.query",
  });
  expect(invalid.details![0]!.loc).toEqual(["body", "query"]);
  expect(invalid.requestId).toMatch(/^req_/);
  expect(invalid.message).toContain(`(422 validation_error, request ${invalid.requestId})`);
  const nowhere = client.memories.create({ content: "x", collection_id: "col_nowhere" });
  expect((await failure(nowhere)).code).toBe("collection_not_found");
  await client.memories.create({ content: "x" }, { idempotencyKey: "twice" });
  const other = client.memories.create({ content: "y" }, { idempotencyKey: "twice" });
  expect((await failure(other)).status).toBe(409);
  const nobody = new Mneme({ baseUrl: inject("url"), apiKey: "" });
  expect((await failure(nobody.memories.list().page())).code).toBe("missing_api_key");
});

test("a missing feature is told with its tier", async () => {
  const flat = { error: "feature_not_available", feature: "graph_write", message: "Not here." };
  await withEndpoint([answers(flat, 403)], async (service) => {
    const poor = new Mneme({ baseUrl: service.url });
    const error = await failure(poor.graph.entities.create({ name: "Ada" }));
    expect(error).toMatchObject({ code: "feature_not_available", status: 403 });
    expect(error.body).toEqual(flat);
  });
});

test("the surroundings name the service", async () => {
  process.env["MNEME_BASE_URL"] = `${inject("url")}/`;
  process.env["MNEME_API_KEY"] = inject("key");
  try {
    const found = new Mneme();
    expect((await found.auth.me()).email).toBe("ada@example.com");
    expect((await found.service.health()).status).toBe("ok");
    expect(await found.service.metrics()).toContain("mneme_");
  } finally {
    delete process.env["MNEME_BASE_URL"];
    delete process.env["MNEME_API_KEY"];
  }
});

test("an operation whose answer is empty answers nothing", async () => {
  const key = await client.auth.apiKeys.create({ name: "short-lived", scopes: ["read"] });
  expect(await client.auth.apiKeys.delete(key.id)).toBeUndefined();
});

test("query and body, where an operation has both", async () => {
  await client.profile.update({ name: "Ada" }, { user_id: "profiled" });
  expect(await client.profile.get({ user_id: "profiled" })).toMatchObject({ name: "Ada" });
});
