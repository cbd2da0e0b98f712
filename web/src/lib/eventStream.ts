/** What does a stream of server-sent events say?  Read with fetch, because EventSource cannot send a key. */

export interface ServerEvent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Events of the complete blocks in `text`, and the beginning of the next one. */
export function parseEvents(text: string): { events: readonly ServerEvent[]; rest: string } {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  return { events: blocks.map(parseBlock).filter((each) => each.data !== ""), rest };
}

function parseBlock(block: string): ServerEvent {
  const found = { id: "", event: "message", data: "" };
  for (const line of block.split("\n")) {
    // A line that begins with a colon is a comment that keeps the connection.
    const [name = "", ...value] = line.split(":");
    const text = value.join(":").replace(/^ /, "");
    if (name === "data") found.data += (found.data ? "\n" : "") + text;
    else if (name === "id" || name === "event") found[name] = text;
  }
  return found;
}

/** Events as they come, until the stream ends. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const { events, rest } = parseEvents(text + value);
      text = rest;
      yield* events;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
