/**
 * Before all tests: a real service on a free port and a directory of its own, and the language
 * model that it asks. After them both end.
 *
 * Tests know `inject("url")`, `inject("model")`, the model's address for those who ask it
 * themselves, `inject("key")`, an API key of one account that tests share, each with end users of
 * its own, and `inject("readersKey")`, one of whoever follows the README.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { TestProject } from "vitest/node";

import { languageModel } from "./model.js";
import { newKey, serve } from "./served.js";

declare module "vitest" {
  interface ProvidedContext {
    url: string;
    model: string;
    key: string;
    readersKey: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), "mneme-typescript-"));
  const model = await languageModel();
  const service = await serve(join(directory, "data"), {
    "llm.base_url": model.url,
    "webhooks.allow_private_networks": true,
  });
  const end = async () => {
    await service.end("SIGTERM");
    model.close();
    rmSync(directory, { recursive: true });
  };
  try {
    project.provide("url", service.url);
    project.provide("model", model.url);
    project.provide("key", await newKey(service.url, "ada@example.com"));
    project.provide("readersKey", await newKey(service.url, "reader@example.com"));
  } catch (error) {
    await end();
    throw error;
  }
  return end;
}
