/**
 * How is what was typed kept?  In the address at once and in localStorage: an error, a reload, a closed tab or a server
 * that starts again loses nothing.  The address wins, so that a link opens what it says.
 */

import { useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { useLater } from "../../lib/later";
import { remember, remembered } from "../../lib/storage";
import { type Draft, readNewPlanSearch } from "../new-plan.search";
import type { Documents } from "./question";

const KEY = "meshwright.draft";
/** After the last key press; a press itself changes only the page. */
const WRITE_AFTER_MS = 250;

interface Kept {
  readonly search: Record<string, unknown>;
  /** What the address said when this was kept: it is behind by the last key presses. */
  readonly address: string;
  readonly documents: Documents;
}

function kept(): Kept {
  const found = remembered(KEY);
  const { search, address, documents } = (
    typeof found === "object" && found !== null ? found : {}
  ) as Partial<Kept>;
  return { search: readNewPlanSearch(search ?? {}), address: address ?? "", documents: documents ?? {} };
}

/** What this browser typed last. */
export function lastTyped(): { readonly draft: Draft; readonly documents: Documents } {
  const { search, documents } = kept();
  return { draft: readNewPlanSearch.full(search as Search), documents };
}

export interface DraftState {
  readonly draft: Draft;
  readonly documents: Documents;
  /** Whether the browser keeps it; false = only this page does. */
  readonly safe: boolean;
  readonly change: (part: Partial<Draft>, documents?: Documents) => void;
}

type Search = ReturnType<typeof readNewPlanSearch>;

/** What a page begins with: the address, unless it says nothing or this browser knows what was typed after it. */
function begun(search: Search): Draft {
  const { search: typed, address } = kept();
  const silent = Object.values(search).every((each) => each === undefined);
  return readNewPlanSearch.full(silent || JSON.stringify(search) === address ? typed : search);
}

/** The draft of this browser, begun by the address `search`. */
export function useDraft(search: Search): DraftState {
  const navigate = useNavigate();
  const later = useLater();
  const [documents, setDocuments] = useState(() => kept().documents);
  const [draft, setDraft] = useState(() => begun(search));
  const [safe, setSafe] = useState(true);
  const written = useRef(JSON.stringify(search));

  // Back, forward or a link: the address says something that this page did not write.
  const said = JSON.stringify(search);
  useEffect(() => {
    if (said === written.current) return;
    written.current = said;
    setDraft(readNewPlanSearch.full(JSON.parse(said) as Search));
  }, [said]);

  useEffect(() => {
    const next = readNewPlanSearch(draft);
    setSafe(remember(KEY, { search: next, address: written.current, documents }));
    return later(() => {
      const text = JSON.stringify(next);
      if (text === written.current) return;
      written.current = text;
      void navigate({ to: "/", search: next, replace: true, resetScroll: false });
    }, WRITE_AFTER_MS);
  }, [draft, documents, navigate, later]);

  const change = useCallback((part: Partial<Draft>, added?: Documents) => {
    setDraft((before) => ({ ...before, ...part }));
    if (added) setDocuments((before) => ({ ...before, ...added }));
  }, []);
  return { draft, documents, safe, change };
}
