/**
 * Answers that come piece by piece: events of a completion, lines of an export.
 *
 * A stream begins when it is iterated over, and can be read once; a second time is a TypeError. A
 * loop that is left early closes it, and the service stops its work. Until the first byte a failed call is repeated like any
 * other, after that it is not.
 *
 * Lines end at a line feed and nowhere else: JSON may hold any other separator of lines as a
 * character.
 */
import { ConnectionFailed, errorOfEvent, UnreadableAnswer } from "./errors.js";
import { isObject, type Call, type Transport } from "./transport.js";

const END_OF_EVENTS = "[DONE]";

/** What the pieces of an answer hold. */
export type Read<T> = (lines: AsyncIterable<string>) => AsyncIterable<T>;

/** The items of a streamed answer. */
export class Stream<T> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #call: Call;
  readonly #read: Read<T>;
  #begun = false;

  constructor(transport: Transport, call: Call, read: Read<T>) {
    this.#transport = transport;
    this.#call = call;
    this.#read = read;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    if (this.#begun) {
      throw new TypeError("A stream can be read once; call the operation again.");
    }
    this.#begun = true;
    const body = await this.#transport.send<ReadableStream<Uint8Array>>(this.#call);
    try {
      yield* this.#read(linesOf(body));
    } catch (error) {
      if (error instanceof NoObject) {
        throw new UnreadableAnswer(this.#call, "a piece of it is no JSON object", { cause: error });
      }
      throw error;
    }
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
      if (done) {
        if (rest) {
          yield rest;
        }
        return;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it has failed already
  }
}

class NoObject extends Error {}

function parsed(text: string): object {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new NoObject(undefined, { cause: error });
  }
  if (!isObject(found)) {
    throw new NoObject();
  }
  return found;
}

/** Lines of JSON. */
export async function* readLines<T>(lines: AsyncIterable<string>): AsyncGenerator<T> {
  for await (const line of lines) {
    if (line.trim()) {
      yield parsed(line) as T;
    }
  }
}

/** Server-sent events whose data is JSON, up to `[DONE]`. One that reports an error is thrown. */
export async function* readEvents<T>(lines: AsyncIterable<string>): AsyncGenerator<T> {
  let data: string[] = [];
  for await (const raw of lines) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (line.startsWith("data:")) {
      data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    } else if (!line && data.length > 0) {
      const text = data.join("\n");
      data = [];
      if (text === END_OF_EVENTS) {
        return;
      }
      const event = parsed(text);
      const error = errorOfEvent(event);
      if (error) {
        throw error;
      }
      yield event as T;
    }
  }
  throw new ConnectionFailed("The stream ended before it was complete.", true);
}
