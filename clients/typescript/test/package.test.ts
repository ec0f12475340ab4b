/**
 * The package as it is installed: built, packed, put into an empty project, and its README followed
 * there: what it installs is installed, and each of its examples passes the type checker, runs, and
 * prints what is printed.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import ts from "typescript";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const README = readFileSync(join(HERE, "README.md"), "utf8");
const FENCES = Array.from(
  README.matchAll(/^```(\w+)\n([^]*?)^```$/gm),
  ([, language = "", text = ""]) => ({ language, text }),
);
const AGENT = {
  name: "agent",
  text: readFileSync(join(HERE, "examples/agent.ts"), "utf8"),
  printed: [
    "Conversation 1",
    "> I eat no nuts.",
    "Noted.",
    "> I live in Lisbon.",
    "Noted.",
    "Conversation 2",
    "> My cello teacher is called Jonas.",
    "Noted.",
    "Conversation 3",
    "> What must I not eat?",
    "You said: I eat no nuts.",
    "> In which city do I live?",
    "You said: I live in Lisbon.",
    "> Who teaches me the cello?",
    "You said: My cello teacher is called Jonas.",
  ].join("\n"),
};
const SHOWN = FENCES.flatMap(({ language, text }, at) =>
  language === "ts" ? [{ name: `example-${at}`, text, printed: FENCES[at + 1]!.text }] : [],
);
const EXAMPLES = [...SHOWN, AGENT];
// Scores differ from time to time.
const CHANGES = /0\.\d\d/g;

const run = promisify(execFile);
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

async function shell(command: string, cwd: string): Promise<string> {
  return (await run("bash", ["-euc", command], { cwd, env: environment })).stdout;
}

beforeAll(async () => {
  const [build, install, sdk] = FENCES.filter(({ language }) => language === "bash");
  const building = build!.text.replace("cd clients/typescript && npm ci && ", "");
  await shell(building.replace("npm pack", `npm pack --pack-destination ${directory}`), HERE);
  writeFileSync(join(directory, "package.json"), '{"private": true, "type": "module"}');
  const [installing, exporting] = install!.text.split("\n");
  expect(exporting).toMatch(/^export MNEME_BASE_URL=\S+ MNEME_API_KEY=/);
  await shell(installing!.replace("path/to", directory), directory);
  await shell(sdk!.text, directory);
});

afterAll(() => rmSync(directory, { recursive: true }));

test("the package holds what it needs and nothing else", async () => {
  const listed = await shell("cd node_modules/mneme-client && find . -type f | sort", directory);
  const files = listed.trim().split("\n");
  expect(files).toContain("./README.md");
  expect(files).toContain("./dist/ai.d.ts");
  const wanted = /^\.\/(dist\/\w+\.(d\.ts|js)|README\.md|package\.json)$/;
  expect(files.filter((name) => !wanted.test(name))).toEqual([]);
});

test("the examples pass the type checker", () => {
  const files = EXAMPLES.map(({ name, text }) => {
    const file = join(directory, `${name}.ts`);
    writeFileSync(file, `${text}\nexport {};\n`);
    return file;
  });
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts"],
    types: ["node"],
    typeRoots: [join(HERE, "node_modules/@types")],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  });
  const found = ts
    .getPreEmitDiagnostics(program)
    .map(({ file, messageText: text }) => [
      file?.fileName,
      ts.flattenDiagnosticMessageText(text, "\n"),
    ]);
  expect(found).toEqual([]);
  expect(SHOWN).toHaveLength(6);
});

test.each(EXAMPLES)("$name prints what is printed", async ({ name, text, printed }) => {
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 };
  const made = ts.transpileModule(text, { compilerOptions: options }).outputText;
  writeFileSync(join(directory, `${name}.mjs`), made);
  const { stdout, stderr } = await run("node", [`${name}.mjs`], {
    cwd: directory,
    env: environment,
  });
  expect(stderr).toBe("");
  expect(stdout.replace(CHANGES, "…").trim()).toBe(printed.replace(CHANGES, "…").trim());
});
