/** How do chosen files become stored measurements?  Looked at, then stored as they were looked at. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem, type Finding, findingsAt } from "../../api/problem";
import { type ImportAnswer, importMeasurements } from "../../api/queries/uploads";
import { tooLarge, withFiles } from "../../lib/chosenFiles";
import { useFileDrop } from "../../lib/fileDrop";
import type { ClustersSearch } from "../clusters.search";
import { factsOf } from "./facts";
import { isRefused } from "./outcomes";

export interface ImportState {
  readonly files: readonly File[];
  readonly held: boolean;
  readonly looked: ImportAnswer | undefined;
  readonly stored: ImportAnswer | undefined;
  readonly findings: readonly Finding[];
  /** Findings that stand beside a field or a file. */
  readonly placed: readonly Finding[];
  /** What was refused and stands nowhere else. */
  readonly error: Error | null;
  readonly isLooking: boolean;
  readonly isStoring: boolean;
  readonly canLook: boolean;
  readonly canStore: boolean;
  readonly choose: (files: readonly File[]) => void;
  readonly look: () => void;
  readonly store: () => void;
  /** What was answered was about another question. */
  readonly forget: () => void;
}

export function useImport(search: ClustersSearch): ImportState {
  const [files, setFiles] = useState<readonly File[]>([]);
  const queries = useQueryClient();
  const { facts, findings: typed } = factsOf(search);
  const wish = { facts, format: search.format, keepGoing: search.keepGoing };
  const looking = useMutation({ mutationFn: () => importMeasurements(files, wish, true) });
  const storing = useMutation({
    mutationFn: () => importMeasurements(files, wish, false),
    // What is measured of a device is read again where it is shown.
    onSuccess: () => queries.invalidateQueries({ queryKey: ["fits"] }),
  });
  const forget = () => {
    looking.reset();
    // What is being stored is stored, whatever is typed meanwhile; its answer is shown.
    if (!storing.isPending) storing.reset();
  };
  const choose = (chosen: readonly File[]) => {
    forget();
    setFiles(chosen);
  };
  const held = useFileDrop((dropped) => choose(withFiles(files, dropped)));
  const error = storing.error ?? looking.error;
  const refused = error instanceof ApiProblem ? (error.problem.errors ?? []) : [];
  const looked = looking.data?.files.flatMap((each) => each.findings) ?? [];
  const findings = [...typed, ...(storing.data ? [] : looked), ...refused];
  const placed = findingsAt(findings, "/files", "/facts", "/format");
  const isPlaced = refused.length > 0 && refused.every((each) => placed.includes(each));
  const isBusy = looking.isPending || storing.isPending;
  const canLook = files.length > 0 && tooLarge(files).length === 0 && typed.length === 0 && !isBusy;
  const usable = looking.data?.files.filter((each) => !isRefused(each)).length ?? 0;
  return {
    files,
    held,
    looked: looking.data,
    stored: storing.data,
    findings,
    placed,
    error: isPlaced ? null : error,
    isLooking: looking.isPending,
    isStoring: storing.isPending,
    canLook,
    canStore:
      canLook && usable > 0 && (search.keepGoing || usable === looking.data?.files.length) && !storing.data,
    choose,
    look: looking.mutate,
    store: storing.mutate,
    forget,
  };
}
