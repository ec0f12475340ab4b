/**
 * Before all tests: a real service on a free port and a directory of its own, and the language
 * model that it asks. After them both end.
 *
 * Tests know `inject("url")`, `inject("model")`, the model's address for those who ask it
 * themselves, `inject("key")`, an API key of one account that tests share, each with end users of
 * its own, and `inject("readersKey")`, one of whoever follows the README.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import type { TestProject } from "vitest/node";

import { languageModel } from "./model.js";

declare module "vitest" {
  interface ProvidedContext {
    url: string;
    model: string;
    key: string;
    readersKey: string;
  }
}

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SETTINGS = {
  "billing.default_tier": "enterprise",
  "limits.requests_per_minute": 0,
  "limits.endpoint_caps": false,
  "webhooks.allow_private_networks": true,
};

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const model = await languageModel();
  const directory = mkdtempSync(join(tmpdir(), "mneme-typescript-"));
  const settings = { ...SETTINGS, "llm.base_url": model.url };
  const given = Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`);
  const where = ["--config", "configs/test.yaml", "--data-dir", join(directory, "data")];
  const service = spawn(
    join(ROOT, ".venv/bin/mneme"),
    ["serve", "--engine", "local", "--port", "0", ...where, ...given],
    { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const url = await announced(service);
    project.provide("url", url);
    project.provide("model", model.url);
    project.provide("key", await newKey(url, "ada@example.com"));
    project.provide("readersKey", await newKey(url, "reader@example.com"));
  } catch (error) {
    service.kill();
    throw error;
  }
  return async () => {
    service.kill();
    await once(service, "exit");
    model.close();
    rmSync(directory, { recursive: true });
  };
}

async function announced(service: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: service.stdout! })) {
    const address = / at (http\S+)/.exec(line);
    if (address) {
      service.stdout!.resume();
      return address[1]!;
    }
  }
  throw new Error("The service did not start; what it says is above.");
}

async function newKey(url: string, email: string): Promise<string> {
  const post = async (path: string, body: object, token?: string) => {
    const answer = await fetch(url + path, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
      },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Record<string, string>;
  };
  const account = await post("/v1/auth/register", {
    email,
    password: "correct horse battery staple",
    full_name: "Ada Lovelace",
  });
  const scopes = ["read", "write", "admin"];
  const asked = { name: "tests", scopes };
  const minted = await post("/v1/auth/api-keys", asked, account["access_token"]);
  return minted["key"]!;
}
