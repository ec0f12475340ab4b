/**
 * A memory for any language model of the AI SDK: what is known about the user's last message goes
 * in front of the conversation, and the turn is stored after it.
 *
 *     const model = wrapLanguageModel({
 *       model: openai("gpt-5"),
 *       middleware: memoryMiddleware(new Mneme(), { user_id: "ada", session_id: "monday" }),
 *     });
 *
 * What is recalled is one system message after those of the prompt, which says of itself that it is
 * information and no instruction. The conversation itself is not touched. Of a loop of tool calls,
 * what the user asked and the last answer are stored; a generation that fails, that has no text, or
 * that is left early is not. An answer after something was recalled has the tag `recalled` and
 * names the memories in its metadata, so that no extraction takes it for something new.
 */
import type { LanguageModelMiddleware } from "ai";

import type { Mneme } from "./client.js";
import type { Schemas } from "./shapes.js";

const QUERY_CHARS_MAX = 8_192;
const CONTENT_CHARS_MAX = 100_000;

/** Whose memories are recalled, and what is stored of a turn. */
export interface MemoryOptions {
  /** The end user, whose memories alone are recalled. */
  user_id: string;
  /** The conversation: stored with a turn; what is recalled is of all conversations. */
  session_id?: string;
  /** Recalls memories of this agent alone, and stores turns as its. */
  agent_id?: string;
  /** Recalls memories of this application alone, and stores turns as its. */
  app_id?: string;
  /** Recalls from this collection alone, and stores turns there. */
  collection_id?: string;
  /** How much is recalled at most; 1,500. */
  token_budget?: number;
  /** Whether turns are stored; true. */
  store?: boolean;
  /**
   * Told of a memory that could not be recalled or stored, which leaves the generation working; by
   * default a warning on the console. Throw in it what a generation shall fail with.
   */
  onError?: (error: unknown) => void;
}

type Call = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Prompt = Call["prompt"];
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type Part = Streamed["stream"] extends ReadableStream<infer One> ? One : never;

interface Turn {
  question: string;
  recalled: string[];
}

/** A middleware for wrapLanguageModel of the AI SDK, 6 or 7. */
export function memoryMiddleware(client: Mneme, options: MemoryOptions): LanguageModelMiddleware {
  const { session_id, token_budget, store = true, onError = warn, ...scope } = options;
  const turns = new WeakMap<Call, Turn>();

  async function recall(params: Call): Promise<Call> {
    const question = lastSaid(params.prompt);
    if (!question) {
      return params;
    }
    let known: Schemas["ContextReply"] | undefined;
    try {
      known = await client.search.context(
        { query: cut(question, QUERY_CHARS_MAX), ...scope, token_budget },
        { signal: params.abortSignal },
      );
    } catch (error) {
      params.abortSignal?.throwIfAborted();
      onError(error);
    }
    const block = typeof known?.context === "string" ? known.context : "";
    const made = block ? { ...params, prompt: withBlock(params.prompt, block) } : { ...params };
    turns.set(made, { question, recalled: block ? (known?.evidence_ids ?? []) : [] });
    return made;
  }

  async function keep(params: Call, answer: string): Promise<void> {
    const turn = turns.get(params);
    if (!store || !turn || !answer.trim()) {
      return;
    }
    const part = (role: "user" | "assistant", text: string) => ({
      role,
      content: cut(text, CONTENT_CHARS_MAX),
      session_id,
      source_type: "chat",
    });
    const recalled = turn.recalled.length > 0 && {
      tags: ["recalled"],
      metadata: { recalled_ids: turn.recalled },
    };
    const said = part("user", turn.question);
    const answered = { ...part("assistant", answer), ...recalled };
    try {
      await client.memories.createBatch({ memories: [said, answered], ...scope });
    } catch (error) {
      onError(error);
    }
  }

  return {
    specificationVersion: "v3",
    transformParams: ({ params }) => recall(params),
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      if (isAnswer(result.finishReason.unified)) {
        await keep(params, result.content.map(textOf).join(""));
      }
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const { stream, ...rest } = await doStream();
      let answer = "";
      let whole = false;
      const listening = new TransformStream<Part, Part>({
        transform(part, controller) {
          answer += part.type === "text-delta" ? part.delta : "";
          whole = part.type === "finish" ? isAnswer(part.finishReason.unified) : whole;
          controller.enqueue(part);
        },
        flush: () => (whole ? keep(params, answer) : undefined),
      });
      return { stream: stream.pipeThrough(listening), ...rest };
    },
  };
}

/** Whether a generation that ends so answers the user. */
function isAnswer(reason: string): boolean {
  return reason !== "tool-calls" && reason !== "error";
}

/** The text of the user's last message; empty where it has none. */
function lastSaid(prompt: Prompt): string {
  const last = prompt.findLast((message) => message.role === "user");
  return last?.role === "user" ? last.content.map(textOf).filter(Boolean).join("\n") : "";
}

/** The prompt with what is recalled after its own system messages, before the conversation. */
function withBlock(prompt: Prompt, block: string): Prompt {
  const at = prompt.findIndex((message) => message.role !== "system");
  return [...prompt.slice(0, at), { role: "system", content: block }, ...prompt.slice(at)];
}

function textOf(part: { type: string; text?: unknown }): string {
  return part.type === "text" && typeof part.text === "string" ? part.text : "";
}

/** The first so many characters, none of them in halves. */
function cut(text: string, characters: number): string {
  return text.length <= characters ? text : Array.from(text).slice(0, characters).join("");
}

function warn(error: unknown): void {
  console.warn("The memory failed:", error instanceof Error ? error.message : error);
}
