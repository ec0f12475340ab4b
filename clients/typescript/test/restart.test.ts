/**
 * A service that is killed and started again under a client's writes: none is lost, none is there
 * twice.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { Mneme } from "../src/index.js";
import { newKey, serve } from "./served.js";

const WRITES = 200;
const AT_ONCE = 16;
const PATIENT = { attemptsMax: 100, waitMsMax: 500 };

test("writes survive a kill of the service", { timeout: 300_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "mneme-restart-"));
  const data = join(directory, "data");
  let service = await serve(data);
  try {
    const { url } = service;
    const apiKey = await newKey(url, "ada@example.com");
    const client = new Mneme({ baseUrl: url, apiKey, retries: PATIENT });
    const wanted = Array.from({ length: WRITES }, (_, number) => `fact number ${number}`);
    const answered = new Map<string, string>();
    let restart: Promise<void> | undefined;
    const killAndStart = async () => {
      await service.end("SIGKILL");
      service = await serve(data, {}, new URL(url).port);
    };
    const write = async () => {
      for (let content = wanted.pop(); content !== undefined; content = wanted.pop()) {
        const made = await client.memories.create({ content }, { prefer: "respond-async" });
        answered.set(content, made.id);
        if (answered.size === WRITES / 2) {
          restart = killAndStart(); // with the others under way
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, write));
    await restart;
    expect(answered.size).toBe(WRITES);
    const stored: [string, string][] = [];
    for await (const memory of client.memories.list({ limit: 100 })) {
      stored.push([memory.content, memory.id]);
    }
    expect(stored).toHaveLength(WRITES);
    expect(new Map(stored)).toEqual(answered);
  } finally {
    await service.end("SIGTERM");
    rmSync(directory, { recursive: true });
  }
});
