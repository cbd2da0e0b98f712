/** How does a file of the API come to the reader?  Asked with the key of this tab, which a plain link would not send. */

import { authorizedFetch } from "./client";
import { problemOfAnswer, problemOfSilence } from "./problem";

export interface Download {
  readonly name: string;
  readonly content: Blob;
}

/** The answer as a file, with the name that the service gives it.  Throws ApiProblem. */
export async function download(address: URL, accept: string): Promise<Download> {
  const request = new Request(address, { headers: { Accept: accept } });
  const response = await authorizedFetch(request).catch((cause: unknown) => {
    throw problemOfSilence(cause);
  });
  if (!response.ok) throw problemOfAnswer(response, await response.json().catch(() => undefined));
  const said = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "");
  return { name: said?.[1] ?? "download", content: await response.blob() };
}
