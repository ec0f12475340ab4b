/**
 * An agent that remembers: three facts over two conversations, and an answer from them in a third.
 *
 *     npx tsx agent.ts
 *
 * Each conversation is a session of its own; the middleware recalls what earlier ones said. The
 * model is scripted: it answers from the memories in its prompt. Put `openai("gpt-5")` in its
 * place, or any other model of the AI SDK, and the agent stays as it is.
 */
import { generateText, wrapLanguageModel, type ModelMessage } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { Mneme } from "mneme-client";
import { memoryMiddleware } from "mneme-client/ai";

const TALK = [
  ["I eat no nuts.", "I live in Lisbon."],
  ["My cello teacher is called Jonas."],
  ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
];

/** Scripted: a question is answered by the memory that has its topic, a statement by a nod. */
const scripted = new MockLanguageModelV3({
  doGenerate: ({ prompt }) => {
    const said = JSON.stringify(prompt.at(-1)!.content);
    const topic = ["eat", "live", "cello"].find((word) => said.includes(word))!;
    const known = prompt.filter(({ role }) => role === "system").map(({ content }) => `${content}`);
    const memories = known.join("\n").match(/I eat .*|I live .*|My cello .*/g) ?? [];
    const fact = memories.find((memory) => memory.includes(topic));
    const text = said.includes("?") && fact ? `You said: ${fact}` : "Noted.";
    return Promise.resolve({
      content: [{ type: "text", text }],
      finishReason: { unified: "stop", raw: undefined },
      usage: {
        inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 0, text: 0, reasoning: 0 },
      },
      warnings: [],
    });
  },
});

const client = new Mneme();
const user_id = crypto.randomUUID();
for (const [number, conversation] of TALK.entries()) {
  console.log(`Conversation ${number + 1}`);
  const middleware = memoryMiddleware(client, { user_id, session_id: crypto.randomUUID() });
  const model = wrapLanguageModel({ model: scripted, middleware });
  const messages: ModelMessage[] = [];
  for (const said of conversation) {
    messages.push({ role: "user", content: said });
    const { text, response } = await generateText({ model, messages });
    messages.push(...response.messages);
    console.log(`> ${said}\n${text}`);
  }
}
