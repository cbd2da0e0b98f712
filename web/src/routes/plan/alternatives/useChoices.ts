/** Which choice is looked at and which are pinned?  Kept in the address; walked by keys. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useKeys } from "../../../lib/keys";
import { type AlternativesSearch, readAlternativesSearch } from "../alternatives.search";
import { type Choice, type SortKey, sorted } from "./choices";

const MOST_PINNED = 2;

export interface ChoicesView {
  readonly search: AlternativesSearch;
  /** In the order of the table. */
  readonly rows: readonly Choice[];
  readonly select: (id: string) => void;
  readonly pin: (id: string) => void;
  readonly sort: (by: SortKey, down: boolean) => void;
}

/** A third pin takes the place of the older one. */
export function withPin(pinned: readonly string[], id: string): readonly string[] {
  return pinned.includes(id) ? pinned.filter((each) => each !== id) : [...pinned, id].slice(-MOST_PINNED);
}

export function useChoices(choices: readonly Choice[]): ChoicesView {
  const search = readAlternativesSearch.full(useSearch({ from: "/plans/$planId/alternatives" }));
  const navigate = useNavigate();
  const write = (part: Partial<AlternativesSearch>, replace = false) =>
    void navigate({ to: ".", search: (before) => ({ ...before, ...part }), replace, resetScroll: false });
  const rows = sorted(choices, search.sort, search.down);
  const select = (choice: string) => write({ choice }, true);
  const pin = (id: string) => write({ pinned: withPin(search.pinned, id) });
  const walk = (step: number) => {
    const at = rows.findIndex((each) => each.id === search.choice);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : (at + step + rows.length) % rows.length];
    if (next) select(next.id);
  };
  const group = "Alternatives";
  useKeys([
    { keys: "j", does: "Next alternative", group, run: () => walk(1) },
    { keys: "k", does: "Previous alternative", group, run: () => walk(-1) },
    { keys: "p", does: "Pin it, or unpin it", group, run: () => search.choice && pin(search.choice) },
    { keys: "Escape", does: "Choose none", group, run: () => select("") },
  ]);
  return { search, rows, select, pin, sort: (sort, down) => write({ sort, down }, true) };
}
