/**
 * Lists that come in pages, read as if they were whole.
 *
 * A listing asks for nothing until it is looked at. Iterating over it walks all its pages, each
 * fetched when the one before is used up; an item that is there throughout is met exactly once,
 * whatever is written meanwhile. `limit` of the operation is the size of a page, not of the list.
 *
 *     for await (const memory of client.memories.list({ user_id: "ada" })) …
 *     const newest = (await client.memories.list({ limit: 10 }).page()).items;
 */
import { UnreadableAnswer } from "./errors.js";
import type { Call, Transport } from "./transport.js";

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** What `cursor` must be for the page after this one. */
  next_cursor: string | null;
  has_more: boolean;
  /** How many items the whole list has. */
  total_count: number;
}

/** A list of T. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #call: Call;

  constructor(transport: Transport, call: Call) {
    this.#transport = transport;
    this.#call = call;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) {
      yield* page.items;
    }
  }

  /** The first page, or the one at `cursor`. */
  page(): Promise<Page<T>> {
    return this.#send(this.#call);
  }

  /** Page by page, to the end. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let page = await this.page();
    yield page;
    while (page.has_more && page.next_cursor) {
      const query = { ...this.#call.query, cursor: page.next_cursor };
      page = await this.#send({ ...this.#call, query });
      yield page;
    }
  }

  async #send(call: Call): Promise<Page<T>> {
    const page = await this.#transport.send<Page<T>>(call);
    if (!Array.isArray(page.items)) {
      throw new UnreadableAnswer(call, "no page of a list");
    }
    return page;
  }
}
