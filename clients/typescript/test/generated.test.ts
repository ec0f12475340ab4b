/** What is generated is what the document says, and the whole needs nothing but the web. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";

import { build } from "vite";
import { expect, expectTypeOf, inject, test } from "vitest";

import {
  verifyWebhook,
  type CompletionChunk,
  type Listing,
  type Mneme,
  type Schemas,
  type Stream,
} from "../src/index.js";
import { ROOT } from "./served.js";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const LICENCES = ["MIT", "Apache-2.0"];

test("the generated files are what the generator writes", async () => {
  const python = join(ROOT, ".venv/bin/python");
  const document = execFileSync(python, ["-m", "runtime.cli.export_openapi"], { cwd: ROOT });
  const directory = mkdtempSync(join(tmpdir(), "mneme-generate-"));
  try {
    cpSync(join(HERE, "generate.mjs"), join(directory, "generate.mjs"));
    cpSync(join(HERE, "src"), join(directory, "src"), { recursive: true });
    symlinkSync(join(HERE, "node_modules"), join(directory, "node_modules"));
    execFileSync("node", ["generate.mjs"], { cwd: directory, input: document });
    for (const name of ["schema.ts", "operations.ts"]) {
      const written = readFileSync(join(directory, "src", name), "utf8");
      const kept = readFileSync(join(HERE, "src", name), "utf8");
      expect(kept === written, `${name}: run make client`).toBe(true);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("types say what is sent and answered", async () => {
  type Client = Mneme;
  expectTypeOf<ReturnType<Client["memories"]["get"]>>().resolves.toEqualTypeOf<Schemas["Memory"]>();
  expectTypeOf<ReturnType<Client["memories"]["list"]>>().toEqualTypeOf<
    Listing<Schemas["Memory"]>
  >();
  expectTypeOf<ReturnType<Client["chat"]["streamCompletions"]>>().toEqualTypeOf<
    Stream<CompletionChunk>
  >();
  expectTypeOf<Schemas["Memory"]["tier"]>().toEqualTypeOf<
    "short_term" | "long_term" | "archived"
  >();
  const check = async (client: Client) => {
    expectTypeOf((await client.search({ query: "tea" })).results[0]!.score).toBeNumber();
    expectTypeOf((await client.memories.create({ content: "x" })).id).toBeString();
    expectTypeOf(await client.memories.create({ messages: [] })).toEqualTypeOf<
      Schemas["Created"]
    >();
    // @ts-expect-error: no such field
    await client.memories.create({ content: "x", contents: "y" });
    // @ts-expect-error: a number is wanted
    await client.search({ query: "tea", limit: "ten" });
    // @ts-expect-error: the conversation is wanted
    await client.chat.completions({ user: "ada" });
    // @ts-expect-error: streamCompletions does that
    await client.chat.completions({ messages: [], stream: true });
    const event = await verifyWebhook("{}", {}, "whsec_1");
    if (event.event_type === "memory.created") {
      expectTypeOf(event.data).toEqualTypeOf<Schemas["MemoryCreated"]>();
    }
  };
  expect(check).toBeInstanceOf(Function);
});

test("it runs where there is nothing but fetch", async () => {
  const entry = join(HERE, "src/index.ts");
  const lib = { entry, name: "mneme", formats: ["iife" as const] };
  const made = await build({
    configFile: false,
    logLevel: "silent",
    build: { lib, write: false, minify: false },
  });
  const { output } = (made as { output: { code: string }[] }[])[0]!;
  const web = {
    ...{ AbortController, ArrayBuffer, Blob, FormData, Headers, ReadableStream, Request, Response },
    ...{ TextDecoder, TextEncoder, URL, Uint8Array, atob, clearTimeout, crypto, fetch, setTimeout },
    where: { baseUrl: inject("url"), apiKey: inject("key") },
  };
  const used = `(async () => {
    const client = new mneme.Mneme(where);
    const memory = await client.memories.create({ content: "On the edge.", user_id: "edge" });
    const found = [];
    for await (const one of client.memories.list({ user_id: "edge" })) found.push(one.id);
    return [found.length === 1 && found[0] === memory.id, typeof process, typeof require];
  })()`;
  const told = runInContext(`${output[0]!.code}\n${used}`, createContext(web)) as Promise<unknown>;
  expect(await told).toEqual([true, "undefined", "undefined"]);
});

test("nothing of Node is imported", () => {
  for (const name of readdirSync(join(HERE, "src"))) {
    const sources = readFileSync(join(HERE, "src", name), "utf8").matchAll(/from "([^"]+)"/g);
    for (const [, source] of sources) {
      expect(source).toMatch(/^(\.\/[a-z]+\.js|openapi-fetch|ai)$/);
    }
  }
});

test("what is installed with it is under MIT or Apache-2.0, and names no address", () => {
  const text = readFileSync(join(HERE, "package-lock.json"), "utf8");
  expect(text).not.toContain('"resolved"');
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { dev?: boolean; license?: string }>;
  };
  const installed = Object.values(packages).filter(({ dev }) => !dev);
  expect(installed.length).toBeGreaterThan(1);
  expect(installed.filter(({ license = "" }) => !LICENCES.includes(license))).toEqual([]);
});
