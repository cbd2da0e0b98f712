/**
 * How does a trace come into Perfetto's page?  From window to window, as its documentation says (perfetto.dev, "Deep
 * linking to the Perfetto UI"): ping until it answers, then post the file.  It stays in this browser.
 */

const PING_EVERY_MS = 50;
const PATIENCE_MS = 12_000;

/** Hand the trace to `tab`, which shows Perfetto's page of `origin`; fails where nobody answers there. */
export async function handOver(tab: Window, origin: string, trace: Blob, title: string): Promise<void> {
  const buffer = await trace.arrayBuffer();
  await answer(tab, origin);
  tab.postMessage({ perfetto: { buffer, title, fileName: `${title}.json` } }, origin, [buffer]);
}

function answer(tab: Window, origin: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearInterval(pinging);
      clearTimeout(waiting);
      removeEventListener("message", listen);
      settle();
    };
    const listen = (event: MessageEvent) => {
      if (event.source === tab && event.origin === origin && event.data === "PONG") end(resolve);
    };
    const silent = () => end(() => reject(new Error(`${origin} does not answer`)));
    addEventListener("message", listen);
    const pinging = setInterval(() => tab.postMessage("PING", origin), PING_EVERY_MS);
    const waiting = setTimeout(silent, PATIENCE_MS);
  });
}
