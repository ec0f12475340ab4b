/**
 * The package as it is installed: built, packed, put into an empty project, and its README followed
 * there: what it installs is installed, and each of its examples passes the type checker, runs, and
 * prints what is printed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";

import { FENCES, HERE, project, run, type Project } from "./project.js";

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

let installed: Project;

beforeAll(async () => {
  installed = await project();
  const sdk = FENCES.filter(({ language }) => language === "bash")[2]!;
  await installed.shell(sdk.text);
});

afterAll(() => installed.remove());

test("the package holds what it needs and nothing else", async () => {
  const listed = await installed.shell("cd node_modules/mneme-client && find . -type f | sort");
  const files = listed.trim().split("\n");
  expect(files).toContain("./README.md");
  expect(files).toContain("./dist/ai.d.ts");
  const wanted = /^\.\/(dist\/\w+\.(d\.ts|js)|README\.md|package\.json)$/;
  expect(files.filter((name) => !wanted.test(name))).toEqual([]);
});

test("the examples pass the type checker", () => {
  const files = EXAMPLES.map(({ name, text }) => {
    const file = join(installed.directory, `${name}.ts`);
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
  writeFileSync(join(installed.directory, `${name}.mjs`), made);
  const { stdout, stderr } = await run("node", [`${name}.mjs`], {
    cwd: installed.directory,
    env: installed.environment,
  });
  expect(stderr).toBe("");
  expect(stdout.replace(CHANGES, "…").trim()).toBe(printed.replace(CHANGES, "…").trim());
});
