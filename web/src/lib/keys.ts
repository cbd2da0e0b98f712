/**
 * Which key does what?  One registry: a screen adds its keys while it is open, and `?` lists all that count now.
 *
 * Keys are single presses, or "g p" = g, then p within a second.  Nothing fires while somebody types, nor with Ctrl,
 * Alt or Meta, which belong to the browser and to assistive technology.
 */

import { useEffect, useRef, useSyncExternalStore } from "react";

export interface KeyBinding {
  /** "n", "?", "ArrowLeft", "g p". */
  readonly keys: string;
  readonly does: string;
  /** Heading in the list of keys. */
  readonly group: string;
  readonly run: () => void;
}

const SEQUENCE_MS = 1000;
let bindings: readonly KeyBinding[] = [];
const watchers = new Set<() => void>();

function change(next: readonly KeyBinding[]): void {
  bindings = next;
  for (const watcher of watchers) watcher();
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Add bindings; the result takes them away. */
export function bindKeys(added: readonly KeyBinding[]): () => void {
  change([...bindings, ...added]);
  return () => change(bindings.filter((each) => !added.includes(each)));
}

/** The binding that a press means, after what was pressed before.  The one added last wins. */
export function bindingFor(
  pressed: string,
  before: string,
  all: readonly KeyBinding[],
): KeyBinding | undefined {
  const meant = (keys: string) => all.findLast((each) => each.keys === keys);
  return (before && meant(`${before} ${pressed}`)) || meant(pressed);
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("dialog[open]")) return true;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button", "submit", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Listen on the whole window; once, in the shell. */
export function listenForKeys(): () => void {
  let before = "";
  let pressedAt = 0;
  const listener = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
      return;
    const fresh = event.timeStamp - pressedAt < SEQUENCE_MS;
    const found = bindingFor(event.key, fresh ? before : "", bindings);
    [before, pressedAt] = found ? ["", 0] : [event.key, event.timeStamp];
    if (!found) return;
    event.preventDefault();
    found.run();
  };
  window.addEventListener("keydown", listener);
  return () => window.removeEventListener("keydown", listener);
}

/** The bindings that count now. */
export function useKeyBindings(): readonly KeyBinding[] {
  return useSyncExternalStore(subscribe, () => bindings);
}

/** Keys of a screen, while it is shown.  `run` may change between renders; the keys themselves may not. */
export function useKeys(wanted: readonly KeyBinding[]): void {
  const latest = useRef(wanted);
  latest.current = wanted;
  const identity = wanted.map((each) => `${each.group}\n${each.keys}\n${each.does}`).join("\n\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the identity stands for the list
  useEffect(
    () =>
      bindKeys(latest.current.map((each, index) => ({ ...each, run: () => latest.current[index]?.run() }))),
    [identity],
  );
}
