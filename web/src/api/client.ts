/**
 * How does a screen ask the API?  `ask(api.GET("/v1/plans/{plan}", ...))`: typed by the OpenAPI document, the answer
 * or an ApiProblem.
 */

import createClient from "openapi-fetch";
import { authorization, currentKey, refuseKey } from "../lib/session";
import { problemOfAnswer, problemOfSilence } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Every request of the UI: the key of this tab goes along, and a 401 makes the shell ask for one. */
export async function authorizedFetch(input: Request): Promise<Response> {
  const key = currentKey();
  const request = new Request(input);
  for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
  const response = await fetch(request);
  if (response.status === 401) refuseKey(key);
  return response;
}

export const api = createClient<paths>({
  baseUrl: typeof window === "undefined" ? "http://127.0.0.1" : window.location.origin,
  fetch: authorizedFetch,
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer's content with its HTTP response.  Throws ApiProblem. */
export async function askWithResponse<T>(
  asked: Promise<Answer<T>>,
): Promise<{ data: T; response: Response }> {
  const answer = await asked.catch((cause: unknown) => {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw problemOfSilence(cause);
  });
  if (answer.data === undefined || !answer.response.ok) throw problemOfAnswer(answer.response, answer.error);
  return { data: answer.data, response: answer.response };
}

/** The answer's content.  Throws ApiProblem. */
export async function ask<T>(asked: Promise<Answer<T>>): Promise<T> {
  return (await askWithResponse(asked)).data;
}
