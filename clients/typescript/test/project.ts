/** An empty project with the package in it, built and packed as whoever installs it has it. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, inject } from "vitest";

export const HERE = fileURLToPath(new URL("..", import.meta.url));
const README = readFileSync(join(HERE, "README.md"), "utf8");
export const FENCES = Array.from(
  README.matchAll(/^```(\w+)\n([^]*?)^```$/gm),
  ([, language = "", text = ""]) => ({ language, text }),
);

export const run = promisify(execFile);

export interface Project {
  directory: string;
  environment: NodeJS.ProcessEnv;
  /** Standard output of a command in the project, or elsewhere. */
  shell: (command: string, cwd?: string) => Promise<string>;
  remove: () => void;
}

/** A project made as the README says. */
export async function project(): Promise<Project> {
  const directory = mkdtempSync(join(tmpdir(), "mneme-package-"));
  const environment = {
    ...process.env,
    MNEME_BASE_URL: inject("url"),
    MNEME_API_KEY: inject("readersKey"),
    LLM_BASE_URL: inject("model"),
    npm_config_prefer_offline: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
  };
  const shell = async (command: string, cwd = directory) =>
    (await run("bash", ["-euc", command], { cwd, env: environment })).stdout;
  const [build, install] = FENCES.filter(({ language }) => language === "bash");
  const building = build!.text.replace("cd clients/typescript && npm ci && ", "");
  await shell(building.replace("npm pack", `npm pack --pack-destination ${directory}`), HERE);
  writeFileSync(join(directory, "package.json"), '{"private": true, "type": "module"}');
  const [installing, exporting] = install!.text.split("\n");
  expect(exporting).toMatch(/^export MNEME_BASE_URL=\S+ MNEME_API_KEY=/);
  await shell(installing!.replace("path/to", directory));
  return { directory, environment, shell, remove: () => rmSync(directory, { recursive: true }) };
}
