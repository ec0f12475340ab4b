/**
 * The package where there is no Node: in Chromium, on a page of an origin that the service is told
 * of and on one that it is not, and in workerd, the runtime of Cloudflare's workers.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

import { build } from "vite";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { HERE, project, type Project } from "./project.js";
import { newKey, serve, type Served } from "./served.js";

const TOURED = {
  once: true,
  found: ["Ada eats no nuts."],
  listed: ["Ada lives in Lisbon.", "Ada eats no nuts."],
  document: "completed",
  said: "Noted.",
  missing: [404, "collection_not_found"],
  etag: '"1"',
  forged: true,
};
const PAGE_MS_MAX = 50_000;
const MINIFLARE = "miniflare@4";
const COMPATIBLE_SINCE = "2026-01-01";

let installed: Project;
let service: Served;
let key: string;
let page: Page;
let otherPage: Page;

beforeAll(async () => {
  installed = await project();
  copyFileSync(join(HERE, "test/tour.js"), join(installed.directory, "tour.js"));
  [page, otherPage] = [await Page.open(), await Page.open()];
  service = await serve(join(installed.directory, "data"), {
    "http.cors_origins": page.origin,
    "llm.base_url": inject("model"),
  });
  key = await newKey(service.url, "ada@example.com");
});

afterAll(async () => {
  await service.end("SIGTERM");
  page.close();
  otherPage.close();
  installed.remove();
});

/** A program that imports tour.js, in one file, as an application is deployed. */
async function bundled(program: string): Promise<string> {
  const entry = join(installed.directory, "entry.js");
  writeFileSync(entry, program);
  const lib = { entry, formats: ["es" as const], fileName: "bundled" };
  const outDir = join(installed.directory, "bundle");
  await build({
    root: installed.directory,
    logLevel: "error",
    build: { lib, outDir, target: "es2022" },
  });
  return readFileSync(join(outDir, "bundled.js"), "utf8");
}

/** A page at an origin of its own, whose script posts back what came of it. */
class Page {
  script = "";
  #posted: (told: string) => void = () => undefined;

  private constructor(
    readonly server: Server,
    readonly origin: string,
  ) {}

  static async open(): Promise<Page> {
    const server = createServer((request, response) => void page.answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const page = new Page(server, `http://127.0.0.1:${port}`);
    return page;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url?.startsWith("/moved/")) {
      response.writeHead(301, { Location: "/elsewhere" }).end();
    } else if (request.method === "POST") {
      this.#posted(await text(request));
      response.end();
    } else if (request.url === "/script.js") {
      response.setHeader("Content-Type", "text/javascript");
      response.end(this.script);
    } else {
      response.setHeader("Content-Type", "text/html");
      response.end('<script type="module" src="/script.js"></script>');
    }
  }

  /** What the expression gives in a browser that shows the page. */
  async evaluate(expression: string): Promise<unknown> {
    this.script = await bundled(`
      import { moved, reaches, tour } from "./tour.js";
      let told;
      try { told = await ${expression}; } catch (error) { told = String(error.stack); }
      await fetch("/", { method: "POST", body: JSON.stringify(told) });`);
    const profile = join(installed.directory, `profile-${new URL(this.origin).port}`);
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
    const chromium = spawn("chromium", [...flags, this.origin], { stdio: "ignore" });
    const ended = once(chromium, "exit");
    try {
      const told = await Promise.race([
        new Promise<string>((resolve) => (this.#posted = resolve)),
        ended.then(() => Promise.reject(new Error("Chromium ended by itself."))),
        pause(PAGE_MS_MAX).then(() => Promise.reject(new Error("The page posted nothing."))),
      ]);
      return JSON.parse(told);
    } finally {
      chromium.kill("SIGTERM");
      await ended;
    }
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

function call(name: string): string {
  return `${name}(${JSON.stringify(service.url)}, ${JSON.stringify(key)})`;
}

test("a page of an origin that the service was told of may do everything", async () => {
  expect(await page.evaluate(call("tour"))).toEqual(TOURED);
});

test("a page of another origin reaches nothing", async () => {
  expect(await otherPage.evaluate(call("reaches"))).toBe(false);
});

test("a redirect is not followed in a browser either", async () => {
  const told = await page.evaluate(`moved("${page.origin}/moved")`);
  expect(told).toMatch(/^UnreadableAnswer: .* \(a redirect\): is baseUrl right\?$/);
});

test("a worker at the edge may do everything", { timeout: 300_000 }, async () => {
  const worker = await bundled(`
    import { tour } from "./tour.js";
    export default {
      async fetch(request, env) {
        return Response.json(await tour(env.MNEME_BASE_URL, env.MNEME_API_KEY));
      },
    };`);
  writeFileSync(join(installed.directory, "worker.js"), worker);
  await installed.shell(`npm install ${MINIFLARE}`);
  const options = {
    modules: true,
    scriptPath: "worker.js",
    compatibilityDate: COMPATIBLE_SINCE,
    bindings: { MNEME_BASE_URL: service.url, MNEME_API_KEY: key },
  };
  const asking = `
    import { Miniflare } from "miniflare";
    const edge = new Miniflare(${JSON.stringify(options)});
    const answer = await edge.dispatchFetch("http://worker.example/");
    console.log(await answer.text());
    await edge.dispose();`;
  const told = execFileSync("node", ["--input-type=module", "-e", asking], {
    cwd: installed.directory,
    encoding: "utf8",
  });
  expect(JSON.parse(told)).toEqual(TOURED);
});
