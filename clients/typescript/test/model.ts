/**
 * A real OpenAI-compatible endpoint, so scripted that its answers follow from what it is asked: it
 * names what the messages before the last one say that somebody is allergic to, and notes
 * everything else. A last message that is "Break off." gets half of a stream.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

interface Asked {
  messages: { role: string; content: string | { text?: string }[] }[];
  model: string;
  stream?: boolean;
}

function answerTo(messages: string[]): string {
  const allergen = /allergic to (\w+)/.exec(messages.slice(0, -1).join("\n"))?.[1];
  return allergen ? `Nothing with ${allergen}.` : "Noted.";
}

export async function languageModel(): Promise<{ url: string; close: () => void }> {
  const server = createServer(async (request, response) => {
    const asked = JSON.parse(await text(request)) as Asked;
    const told = asked.messages.map(({ content }) =>
      typeof content === "string" ? content : content.map((part) => part.text ?? "").join(""),
    );
    const made = { id: "chatcmpl-7", created: 1_750_000_000, model: asked.model };
    const content = answerTo(told);
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    if (!asked.stream) {
      const message = { role: "assistant", content };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ ...made, object: "chat.completion", choices, usage }));
      return;
    }
    response.setHeader("Content-Type", "text/event-stream");
    const event = (delta: object, finish_reason: string | null = null) => {
      const choices = [{ index: 0, delta, finish_reason }];
      const chunk = { ...made, object: "chat.completion.chunk", choices };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    for (const word of content.match(/\S+\s*/g) ?? []) {
      event({ content: word });
    }
    if (told.at(-1) === "Break off.") {
      response.write(": so far\n\n", () => response.destroy());
      return;
    }
    event({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, close: () => server.close() };
}
