/** Real services for tests: `mneme serve` in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SETTINGS = {
  "billing.default_tier": "enterprise",
  "limits.requests_per_minute": 0,
  "limits.endpoint_caps": false,
};

export interface Served {
  url: string;
  /** Ends the process, in order or as a power failure would. */
  end: (signal: "SIGTERM" | "SIGKILL") => Promise<void>;
}

/** A service that answers, on this directory, and on a free port unless one is named. */
export async function serve(
  directory: string,
  settings: Record<string, unknown> = {},
  port = "0",
): Promise<Served> {
  const all = Object.entries({ ...SETTINGS, ...settings });
  const given = all.map(([name, value]) => `--set=${name}=${value}`);
  const where = ["--config", "configs/test.yaml", "--data-dir", directory, "--port", port];
  const service = spawn(
    join(ROOT, ".venv/bin/mneme"),
    ["serve", "--engine", "local", ...where, ...given],
    { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] },
  );
  const ended = once(service, "exit");
  for await (const line of createInterface({ input: service.stdout })) {
    const address = / at (http\S+)/.exec(line);
    if (address) {
      service.stdout.resume();
      const end = async (signal: NodeJS.Signals) => {
        service.kill(signal);
        await ended;
      };
      return { url: address[1]!, end };
    }
  }
  throw new Error("The service did not start; what it says is above.");
}

/** An API key of a new account. */
export async function newKey(url: string, email: string): Promise<string> {
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
