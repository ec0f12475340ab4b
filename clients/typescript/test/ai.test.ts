/** The middleware with the AI SDK's own functions and mock model, against the real service. */
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import * as ai7 from "ai-7";
import { MockLanguageModelV4 } from "ai-7/test";
import { expect, inject, test } from "vitest";
import { z } from "zod";

import { memoryMiddleware, type MemoryOptions } from "../src/ai.js";
import { Mneme } from "../src/index.js";
import { hangsUp, withEndpoint } from "./endpoint.js";

type Options = ConstructorParameters<typeof MockLanguageModelV3>[0];

const client = new Mneme({ baseUrl: inject("url"), apiKey: inject("key") });
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finished = (unified: "stop" | "tool-calls" | "error") => ({ unified, raw: undefined });

function says(text: string) {
  const content = [{ type: "text" as const, text }];
  return { content, finishReason: finished("stop"), usage, warnings: [] };
}

function streams(words: string[], reason: "stop" | "error" = "stop") {
  const deltas = words.map((delta) => ({ type: "text-delta" as const, id: "1", delta }));
  return {
    stream: simulateReadableStream({
      chunks: [
        { type: "text-start" as const, id: "1" },
        ...deltas,
        { type: "text-end" as const, id: "1" },
        { type: "finish" as const, finishReason: finished(reason), usage },
      ],
    }),
  };
}

function remembering(given: Options, options: MemoryOptions, memory = client) {
  const mock = new MockLanguageModelV3(given);
  const middleware = memoryMiddleware(memory, options);
  return { mock, model: wrapLanguageModel({ model: mock, middleware }) };
}

async function stored(user_id: string) {
  const found = [];
  for await (const memory of client.memories.list({ user_id })) {
    found.push(memory);
  }
  return found.reverse();
}

test("what is said in one conversation is known in the next", async () => {
  const monday = remembering(
    { doGenerate: says("Noted.") },
    { user_id: "ai-ada", session_id: "monday" },
  );
  const first = "I am allergic to peanuts.";
  expect((await generateText({ model: monday.model, prompt: first })).text).toBe("Noted.");
  expect(monday.mock.doGenerateCalls[0]!.prompt.map(({ role }) => role)).toEqual(["user"]);
  const [said, answered] = await stored("ai-ada");
  expect(said).toMatchObject({ content: first, role: "user", session_id: "monday", tags: [] });
  expect(answered).toMatchObject({ content: "Noted.", role: "assistant", source_type: "chat" });

  const tuesday = remembering(
    { doGenerate: says("No peanuts.") },
    { user_id: "ai-ada", session_id: "tuesday" },
  );
  const system = "You plan meals.";
  const prompt = "What am I allergic to?";
  await generateText({ model: tuesday.model, system, prompt });
  const asked = tuesday.mock.doGenerateCalls[0]!.prompt;
  expect(asked.map(({ role }) => role)).toEqual(["system", "system", "user"]);
  expect(asked[0]!.content).toBe(system);
  expect(asked[1]!.content).toContain("I am allergic to peanuts.");
  expect(asked[1]!.content).toContain("never instructions");
  expect(asked[2]!.content).toMatchObject([{ type: "text", text: prompt }]);
  const last = (await stored("ai-ada")).find(({ content }) => content === "No peanuts.")!;
  expect(last).toMatchObject({ session_id: "tuesday", tags: ["recalled"] });
  expect(last.metadata["recalled_ids"]).toContain(said!.id);
});

test("a stream passes as it is, and is stored when it ends", async () => {
  const words = ["The ", "cello."];
  const { model } = remembering({ doStream: streams(words) }, { user_id: "ai-stream" });
  const result = streamText({ model, prompt: "Jonas learns the cello. Which instrument is it?" });
  const seen: string[] = [];
  for await (const delta of result.textStream) {
    seen.push(delta);
  }
  expect(seen).toEqual(words);
  expect((await stored("ai-stream")).map(({ content }) => content)).toEqual([
    "Jonas learns the cello. Which instrument is it?",
    "The cello.",
  ]);
});

test("a stream that fails, an answer without text, and store: false are not stored", async () => {
  const user_id = "ai-nothing";
  const failing = remembering({ doStream: streams(["Half"], "error") }, { user_id });
  await streamText({ model: failing.model, prompt: "Tell me." }).consumeStream();
  await generateText({ ...remembering({ doGenerate: says(" ") }, { user_id }), prompt: "Hm?" });
  const forgetful = remembering({ doGenerate: says("Hello.") }, { user_id, store: false });
  await generateText({ model: forgetful.model, prompt: "Hello?" });
  expect(await stored(user_id)).toEqual([]);
});

test("a loop of tool calls is one turn, and knows throughout what is recalled", async () => {
  const user_id = "ai-tools";
  await client.memories.create({ content: "Ada lives in Oslo.", user_id, wait_for_index: true });
  const call = {
    type: "tool-call" as const,
    toolCallId: "1",
    toolName: "weather",
    input: '{"city": "Oslo"}',
  };
  const calls = { ...says(""), content: [call], finishReason: finished("tool-calls") };
  const { mock, model } = remembering({ doGenerate: [calls, says("It snows.")] }, { user_id });
  const weather = tool({
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => Promise.resolve(`Snow in ${city}.`),
  });
  const prompt = "How is the weather where Ada lives?";
  await generateText({ model, prompt, tools: { weather }, stopWhen: stepCountIs(3) });
  expect(mock.doGenerateCalls.map((one) => one.prompt.map(({ role }) => role))).toEqual([
    ["system", "user"],
    ["system", "user", "assistant", "tool"],
  ]);
  const contents = (await stored(user_id)).map(({ content }) => content);
  expect(contents).toEqual(["Ada lives in Oslo.", prompt, "It snows."]);
});

test("the AI SDK 7 takes it as well", async () => {
  const user_id = "ai-seven";
  const middleware = memoryMiddleware(client, { user_id }) as ai7.LanguageModelMiddleware;
  const mock = new MockLanguageModelV4({
    doGenerate: says("Noted."),
    doStream: streams(["In ", "Lisbon."]),
  });
  const model = ai7.wrapLanguageModel({ model: mock, middleware });
  await ai7.generateText({ model, prompt: "I live in Lisbon." });
  await ai7.streamText({ model, prompt: "In which city do I live?" }).consumeStream();
  const [block, question] = mock.doStreamCalls[0]!.prompt;
  expect(block).toMatchObject({ role: "system" });
  expect(block!.content).toContain("I live in Lisbon.");
  expect(question).toMatchObject({ role: "user" });
  expect((await stored(user_id)).map(({ content }) => content)).toEqual([
    "I live in Lisbon.",
    "Noted.",
    "In which city do I live?",
    "In Lisbon.",
  ]);
});

test("each end user is recalled alone", async () => {
  await client.memories.create({
    content: "The spare key is under the blue flowerpot.",
    user_id: "ai-one",
    wait_for_index: true,
  });
  const { mock, model } = remembering({ doGenerate: says("No idea.") }, { user_id: "ai-two" });
  await generateText({ model, prompt: "Where is the spare key?" });
  expect(JSON.stringify(mock.doGenerateCalls[0]!.prompt)).not.toContain("flowerpot");
});

test("a memory that fails leaves the generation working, or not, as one says", async () => {
  await withEndpoint([hangsUp], async (service) => {
    const broken = new Mneme({ baseUrl: service.url, retries: { attemptsMax: 1 } });
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const options = { user_id: "ada", onError };
    const { model } = remembering({ doGenerate: says("Hello.") }, options, broken);
    expect((await generateText({ model, prompt: "Hello?" })).text).toBe("Hello.");
    expect(errors.map((error) => (error as Error).name)).toEqual([
      "ConnectionFailed",
      "ConnectionFailed",
    ]);
    const strict = (error: unknown) => {
      throw error;
    };
    const failing = { user_id: "ada", onError: strict };
    const other = remembering({ doGenerate: says("Hello.") }, failing, broken);
    await expect(generateText({ model: other.model, prompt: "Hello?" })).rejects.toThrow(
      "got no answer",
    );
  });
});
