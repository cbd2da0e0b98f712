/** What did the API refuse, and why?  A problem document (RFC 9457), or what stands for one when nothing answered. */

import type { components } from "./schema";

export type ProblemDetails = components["schemas"]["ProblemDetails"];
export type Finding = components["schemas"]["Finding"];

export class ApiProblem extends Error {
  readonly problem: ProblemDetails;

  constructor(problem: ProblemDetails) {
    super(problem.detail);
    this.name = "ApiProblem";
    this.problem = problem;
  }
}

function own(slug: string, title: string, status: number, detail: string, hint?: string): ProblemDetails {
  const errors = hint ? [{ pointer: "", detail, hint }] : [];
  return { type: "about:blank", slug, title, status, detail, errors, pruned: {} };
}

function isProblem(body: unknown): body is ProblemDetails {
  return typeof body === "object" && body !== null && "slug" in body && "detail" in body;
}

/** The problem of an answer that is none of the good ones. */
export function problemOfAnswer(response: Response, body: unknown): ApiProblem {
  if (isProblem(body))
    return new ApiProblem({ ...body, errors: body.errors ?? [], pruned: body.pruned ?? {} });
  const title = response.statusText || "Unexpected answer";
  return new ApiProblem(
    own("unexpected-answer", title, response.status, `The service answered ${response.status}.`),
  );
}

/** The problem of a request that got no answer. */
export function problemOfSilence(cause: unknown): ApiProblem {
  const words = cause instanceof Error ? cause.message : String(cause);
  return new ApiProblem(
    own(
      "unreachable",
      "The service does not answer",
      0,
      `No answer came (${words}).`,
      "check that `meshwright serve` is running; nothing that you typed is lost",
    ),
  );
}

/** Whatever was thrown, as a problem that can be shown. */
export function asProblem(error: unknown): ProblemDetails {
  if (error instanceof ApiProblem) return error.problem;
  const words = error instanceof Error ? error.message : String(error);
  return own(
    "page-failed",
    "This page made a mistake",
    0,
    words,
    "reload it; if it comes back, report it with this sentence",
  );
}

/** Findings about a part of the request: at the pointer itself or below it. */
export function findingsAt(findings: readonly Finding[], ...pointers: readonly string[]): readonly Finding[] {
  return findings.filter((each) =>
    pointers.some((pointer) => each.pointer === pointer || each.pointer.startsWith(`${pointer}/`)),
  );
}
