#!/usr/bin/env node
/**
 * Writes src/schema.ts and src/operations.ts from the service's OpenAPI document.
 *
 *     node generate.mjs < openapi.json        (make client does both)
 *
 * schema.ts is what openapi-typescript makes of the document. operations.ts has a class for each
 * group of operations, and in it a property for each operation; everything else of the package is
 * written by hand and knows no operation. Both say the SHA-256 of the document that they are from.
 *
 * What becomes of an operation:
 *     memories.jobs.get      client.memories.jobs.get(…); search.search, named like its group, is
 *                            client.search(…)
 *     path                   arguments; after them one object of what the body or the query holds,
 *                            or one of each; after these the options
 *     GET that answers pages a Listing; lines and events are a Stream, the latter as a second
 *                            method, stream<Name>
 * A second path of an operation (`.alias1`) is the same operation and gets no method.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { text as whole } from "node:stream/consumers";

import openapiTS, { astToString } from "openapi-typescript";

// What the document tells in words: one text makes one memory, whose fields are the answer's own.
const OVERLOADS = {
  "memories.create": {
    body: 'Schemas["NewMemory"] & { content: string; infer?: false }',
    returns: 'Promise<Schemas["CreatedMemory"]>',
  },
};
const OWN_CALLS = ["billing.stripe_events"]; // Stripe calls it, signed with its own secret
const COLUMNS = 98;

const text = (await whole(process.stdin)).trimEnd();
const document = JSON.parse(text);
const schemas = document.components.schemas;
const header = `// Written by generate.mjs from the OpenAPI document; change that, not this.
// SHA-256 of the document: ${createHash("sha256").update(text).digest("hex")}
`;

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const pascal = (name) => (name ? camel(`_${name.replaceAll(".", "_")}`) : "Operations");
const named = (schema) => schema?.$ref?.split("/").pop();
const typeOf = (schema) => `Schemas["${named(schema)}"]`;

/** The document without what no type comes from: examples, headers, and answers that fail. */
function slimmed() {
  const slim = structuredClone(document);
  for (const event of Object.values(slim.webhooks)) {
    event.post.parameters = [];
  }
  const paths = [...Object.values(slim.paths), ...Object.values(slim.webhooks)];
  for (const operation of paths.flatMap(Object.values)) {
    const answers = Object.entries(operation.responses).filter(([status]) => status[0] === "2");
    operation.responses = Object.fromEntries(answers);
    for (const [, answer] of answers) {
      delete answer.headers;
    }
    for (const part of [operation.requestBody, ...answers.map(([, answer]) => answer)]) {
      for (const content of Object.values(part?.content ?? {})) {
        delete content.example;
      }
    }
  }
  delete slim.components.responses;
  delete slim.components.headers;
  Object.values(slim.components.schemas).forEach(untitled);
  return slim;
}

/** Without titles, which say a field's name again, and defaults of null. */
function untitled(schema) {
  delete schema.title;
  if (schema.default === null) {
    delete schema.default;
  }
  const inner = [schema.items, schema.additionalProperties, ...(schema.prefixItems ?? [])];
  inner.push(...Object.values(schema.properties ?? {}));
  inner.push(...["anyOf", "oneOf", "allOf"].flatMap((word) => schema[word] ?? []));
  inner.filter((one) => typeof one === "object").forEach(untitled);
}

/** The operations in groups by their names: {name, methods, groups}. */
function tree() {
  const root = { name: "", methods: [], groups: new Map() };
  const found = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ path, verb, operation })),
  );
  found.sort((a, b) => (a.operation.operationId < b.operation.operationId ? -1 : 1));
  for (const { path, verb, operation } of found) {
    const id = operation.operationId;
    if (id.includes(".alias") || OWN_CALLS.includes(id)) {
      continue;
    }
    const way = id.split(".");
    const last = way.pop();
    let group = root;
    for (const [depth, step] of way.entries()) {
      if (!group.groups.has(step)) {
        const name = way.slice(0, depth + 1).join(".");
        group.groups.set(step, { name, methods: [], groups: new Map() });
      }
      group = group.groups.get(step);
    }
    group.methods.push(...methodsOf(last, way.at(-1), path, verb, operation));
  }
  return root;
}

/** The method of an operation, and a second one where its answer may be a stream of events. */
function methodsOf(last, group, path, verb, operation) {
  const answers = Object.entries(operation.responses).filter(([status]) => status[0] === "2");
  const contents = Object.assign({}, ...answers.map(([, answer]) => answer.content ?? {}));
  const events = "text/event-stream" in contents;
  const made = {
    name: last === group ? "" : camel(last),
    about: [operation.summary, operation.description],
    overload: OVERLOADS[operation.operationId],
    ...callOf(path, verb, operation, events),
    ...answerOf(answers, contents),
  };
  if (!events) {
    return [made];
  }
  const streamed = {
    ...made,
    name: camel(`stream_${last}`),
    about: [`${operation.summary}, piece by piece as it is made`, operation.description],
    body: `{ ...body, stream: true }`,
    accept: "text/event-stream",
    as: "stream",
    returns: "Stream<CompletionChunk>",
    sends: (call) => `new Stream(this.#transport, ${call}, readEvents<CompletionChunk>)`,
  };
  return [made, streamed];
}

/** What of a call its arguments become. */
function callOf(path, verb, operation, events) {
  const parameters = operation.parameters.filter((parameter) => parameter.name);
  const headers = operation.parameters.map(named);
  const ids = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
  const query = parameters.filter((parameter) => parameter.in === "query");
  const content = operation.requestBody?.content ?? {};
  const isForm = "multipart/form-data" in content;
  const schema = Object.values(content)[0]?.schema;
  const shape = schemas[named(schema)];
  const isSaid = Object.keys(shape?.properties ?? {}).every((field) =>
    query.some(({ name }) => name === field),
  );
  const given = [];
  let body;
  if (isForm) {
    given.push("file: FileContent", "fields: UploadFields = {}");
    body = "formOf(file, fields)";
  } else if (shape && !isSaid) {
    const type = `${typeOf(schema)}${events ? " & { stream?: never }" : ""}`;
    const isNeeded = shape.required?.length || shape.oneOf || shape.anyOf;
    given.push(`body: ${type}${isNeeded ? "" : " = {}"}`);
    body = "body";
  }
  if (query.length) {
    const isNeeded = query.some(({ required }) => required);
    given.push(`query: Query<"${operation.operationId}">${isNeeded ? "" : " = {}"}`);
  }
  const isKeyed = headers.includes("IdempotencyKey");
  const options = [isKeyed ? "Keyed" : "CallOptions"];
  options.push(...(headers.includes("Prefer") ? ["Preferring"] : []));
  options.push(...(headers.includes("IfMatch") ? ["Matching"] : []));
  return {
    method: verb.toUpperCase(),
    path,
    arguments: [
      ...ids.map((id) => `${camel(id)}: string`),
      ...given,
      `options: ${options.join(" & ")} = {}`,
    ],
    in: ids.length && `{ ${ids.map((id) => `${id}: ${camel(id)}`).join(", ")} }`,
    query: query.length > 0,
    body,
    keyed: isKeyed,
    once: verb !== "get" && !isKeyed && operation["x-required-scope"] !== "read",
  };
}

/** How the answer is read, and what it is. */
function answerOf(answers, contents) {
  const send = (type) => ({
    returns: `Promise<${type}>`,
    sends: (call) => `this.#transport.send(${call})`,
  });
  const [kind] = Object.keys(contents);
  if (kind === undefined) {
    return { as: "text", ...send("void") };
  }
  if (kind === "application/json") {
    const items = schemas[named(contents[kind].schema)].properties?.items;
    const page = /^Page_/.test(named(contents[kind].schema));
    if (page) {
      const sends = (call) => `new Listing(this.#transport, ${call})`;
      return { as: "json", returns: `Listing<${typeOf(items.items)}>`, sends };
    }
    const types = answers.map(([, answer]) => typeOf(answer.content[kind].schema));
    return { as: "json", ...send([...new Set(types)].join(" | ")) };
  }
  if (kind === "application/x-ndjson") {
    return {
      as: "stream",
      accept: kind,
      returns: `Stream<${typeOf(contents[kind].schema)}>`,
      sends: (call) =>
        `new Stream(this.#transport, ${call}, readLines<${typeOf(contents[kind].schema)}>)`,
    };
  }
  const isBinary = schemas[named(contents[kind].schema)]?.format === "binary";
  return isBinary
    ? { as: "arrayBuffer", accept: "*/*", ...send("ArrayBuffer") }
    : { as: "text", accept: "*/*", ...send("string") };
}

function commentOf(paragraphs, indent) {
  const lines = [];
  for (const [at, paragraph] of paragraphs.filter(Boolean).entries()) {
    lines.push(...(at ? [""] : []));
    let line = "";
    for (const word of paragraph.replaceAll("*/", "*\\/").split(/\s+/)) {
      if (line && indent.length + 3 + line.length + 1 + word.length > COLUMNS) {
        lines.push(line);
        line = "";
      }
      line += line ? ` ${word}` : word;
    }
    lines.push(line);
  }
  const rows = lines.map((line) => `${indent} *${line ? ` ${line}` : ""}`);
  return [`${indent}/**`, ...rows, `${indent} */`].join("\n");
}

/** An arrow function: its parameters and its body. */
function functionOf(method, indent) {
  const parts = [
    `method: "${method.method}"`,
    `path: "${method.path}"`,
    method.in && `in: ${method.in}`,
    method.query && "query",
    method.body && (method.body === "body" ? "body" : `body: ${method.body}`),
    `as: "${method.as}"`,
    method.accept && `accept: "${method.accept}"`,
    method.keyed && "keyed: true",
    method.once && "once: true",
    "options",
  ].filter(Boolean);
  const call = `{\n${parts.map((part) => `${indent}    ${part},`).join("\n")}\n${indent}  }`;
  const given = method.arguments.map((argument) => `${indent}  ${argument},`).join("\n");
  const returns = method.overload ? "Promise<never>" : method.returns;
  return `(\n${given}\n${indent}): ${returns} =>\n${indent}  ${method.sends(call)}`;
}

function classOf(group) {
  const about = group.name ? `Operations named \`${group.name}.…\`.` : "All operations.";
  const lines = [commentOf([about], ""), `export class ${pascal(group.name)} {`];
  const own = group.methods.filter(({ name }) => name);
  lines.push("  readonly #transport: Transport;");
  for (const inner of group.groups.values()) {
    lines.push(`  readonly ${camel(inner.name.split(".").pop())}: ${groupType(inner)};`);
  }
  lines.push("", "  constructor(transport: Transport) {", "    this.#transport = transport;");
  for (const inner of group.groups.values()) {
    const made = `new ${pascal(inner.name)}(transport)`;
    const name = camel(inner.name.split(".").pop());
    const call = inner.methods.find((method) => !method.name);
    lines.push(
      call
        ? `    this.${name} = Object.assign(${functionOf(call, "    ")}, ${made});`
        : `    this.${name} = ${made};`,
    );
  }
  lines.push("  }");
  for (const method of own) {
    lines.push("", commentOf(method.about, "  "));
    const types = method.overload ? `: ${overloadsOf(method)}` : "";
    lines.push(`  readonly ${method.name}${types} = ${functionOf(method, "  ")};`);
  }
  lines.push("}");
  return [...[...group.groups.values()].flatMap(classOf), lines.join("\n")];
}

/** The types of a method whose answer follows from what its body is. */
function overloadsOf(method) {
  const given = method.arguments.map(optional);
  const narrow = given.map((one) => one.replace(/^body: .*/, `body: ${method.overload.body}`));
  return `{
    (${narrow.join(", ")}): ${method.overload.returns};
    (${given.join(", ")}): ${method.returns};
  }`;
}

/** A parameter with a default, as a type has it. */
const optional = (parameter) => parameter.replace(/(\w+): (.*) = \{\}$/, "$1?: $2");

/** A group, which is a function as well where an operation is named like it. */
function groupType(group) {
  const call = group.methods.find((method) => !method.name);
  if (!call) {
    return pascal(group.name);
  }
  const given = call.arguments.map(optional);
  const signature = `(${given.join(", ")}): ${call.returns};`;
  return `${pascal(group.name)} & {\n${commentOf(call.about, "    ")}\n    ${signature}\n  }`;
}

const imports = `import { Listing } from "./listing.js";
import type { CompletionChunk, Query, Schemas } from "./shapes.js";
import { Stream, readEvents, readLines } from "./streams.js";
import type { CallOptions, Keyed, Matching, Preferring, Transport } from "./transport.js";
import { formOf, type FileContent, type UploadFields } from "./uploads.js";
`;

const nodes = await openapiTS(slimmed(), { defaultNonNullable: false });
const written = (name) => new URL(`./src/${name}`, import.meta.url);
writeFileSync(written("schema.ts"), `${header}\n${astToString(nodes)}`);
writeFileSync(
  written("operations.ts"),
  `${header}${imports}\n${classOf(tree()).join("\n\n")}\n`,
);
