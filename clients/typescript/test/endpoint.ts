/** A real HTTP endpoint that answers a client as a test says, and notes what came. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Act = (response: ServerResponse) => void;

export interface Endpoint {
  url: string;
  received: Received[];
  /** How many answers nobody waited for any more. */
  left: () => number;
}

/** A whole answer. */
export function answers(body: unknown, status = 200, headers: Record<string, string> = {}): Act {
  return (response) => {
    const content = typeof body === "string" ? body : JSON.stringify(body);
    const type = typeof body === "string" ? "text/plain" : "application/json";
    response.writeHead(status, { "Content-Type": type, ...headers });
    response.end(content);
  };
}

/** The service's error envelope. */
export function refuses(
  status: number,
  code?: string,
  headers: Record<string, string> = {},
): Act {
  const error = { message: "No.", type: "server_error", param: null, status_code: status, code };
  return answers({ error: { ...error, request_id: "req_1" } }, status, headers);
}

/** Not a byte. */
export const hangsUp: Act = (response) => response.destroy();

/** Half of an answer. */
export const breaksOff: Act = (response) => {
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "1000" });
  response.write('{"id": ', () => response.destroy());
};

/** So much, and then nothing more. */
export function stalls(beginning?: string): Act {
  return (response) => {
    if (beginning !== undefined) {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(beginning);
    }
  };
}

/** Each request takes the next act, or the last one again when it is the only one left. */
export async function withEndpoint<T>(
  acts: Act[],
  use: (endpoint: Endpoint) => Promise<T>,
): Promise<T> {
  const received: Received[] = [];
  const left = [...acts];
  let abandoned = 0;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { method = "", url: path = "", headers } = request;
    received.push({ method, path, headers, body });
    response.on("close", () => (abandoned += response.writableFinished ? 0 : 1));
    (left.length === 1 ? left[0]! : left.shift()!)(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await use({ url: `http://127.0.0.1:${port}`, received, left: () => abandoned });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
