import { expect, test } from "vitest";
import { parseEvents, readEvents } from "./eventStream";

const TEXT =
  'id: 1\nevent: queued\ndata: {"seq":1}\n\n: still here\n\nid: 2\nevent: running\ndata: {"a":\ndata: 2}\n\nid: 3\nda';

test("complete blocks are events, comments are none, the rest waits", () => {
  const { events, rest } = parseEvents(TEXT);
  expect(events).toEqual([
    { id: "1", event: "queued", data: '{"seq":1}' },
    { id: "2", event: "running", data: '{"a":\n2}' },
  ]);
  expect(rest).toBe("id: 3\nda");
});

test("events cut anywhere, also inside a character, arrive whole", async () => {
  const bytes = new TextEncoder().encode("id: 1\ndata: µ\n\nid: 2\ndata: b\n\n");
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const found = [];
  for await (const event of readEvents(stream)) found.push(event.data);
  expect(found).toEqual(["µ", "b"]);
});
