/**
 * What the tests of other runtimes do there with the installed package. It is bundled as an
 * application's code is, and calls nothing of Node.
 */
import { ConnectionFailed, Mneme, NotGenuine, verifyWebhook } from "mneme-client";

/** One of each kind of call; -> what came of them. */
export async function tour(baseUrl, apiKey) {
  const client = new Mneme({ baseUrl, apiKey });
  const user_id = crypto.randomUUID();
  const nuts = { content: "Ada eats no nuts.", user_id };
  const memory = await client.memories.create(nuts, { idempotencyKey: user_id });
  const again = await client.memories.create(nuts, { idempotencyKey: user_id });
  await client.waitReady(memory);
  const { results } = await client.search({ query: "What must Ada not eat?", user_id });
  await client.memories.create({ content: "Ada lives in Lisbon.", user_id });
  const listed = [];
  for await (const { content } of client.memories.list({ user_id, limit: 1 })) listed.push(content);
  const house = new Blob(["The kitchen is on the second floor."]);
  const uploaded = await client.documents.upload(house, { filename: "house.txt" });
  const { status } = await client.waitDocument(uploaded);
  const pieces = [];
  const messages = [{ role: "user", content: "Good morning." }];
  for await (const { choices } of client.chat.streamCompletions({ messages, store: false })) {
    pieces.push(choices[0]?.delta.content ?? "");
  }
  const missing = await client.collections.get("col_nowhere").catch((error) => error);
  const headers = { Authorization: `Bearer ${apiKey}` };
  const read = await fetch(`${baseUrl}/v1/memories/${memory.id}`, { headers });
  const hook = new TextEncoder().encode("{}");
  const forged = await verifyWebhook(hook, new Headers(), "whsec_1234").catch((error) => error);
  return {
    once: memory.id === again.id,
    found: results.map(({ content }) => content),
    listed,
    document: status,
    said: pieces.join(""),
    missing: [missing.status, missing.code],
    etag: read.headers.get("etag"),
    forged: forged instanceof NotGenuine,
  };
}

/** How a write ends at an address that redirects. */
export async function moved(baseUrl) {
  const client = new Mneme({ baseUrl, apiKey: "k" });
  const error = await client.memories.create({ content: "x" }).catch((thrown) => thrown);
  return String(error);
}

/** Whether a call gets an answer that may be read. */
export async function reaches(baseUrl, apiKey) {
  const client = new Mneme({ baseUrl, apiKey, retries: { attemptsMax: 1 } });
  try {
    await client.memories.list().page();
    return true;
  } catch (error) {
    if (error instanceof ConnectionFailed) return false;
    throw error;
  }
}
