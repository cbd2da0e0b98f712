/** Who asks?  The API key of this tab: kept in sessionStorage, sent as a header, never as a cookie. */

import { useSyncExternalStore } from "react";

const KEY = "meshwright.api-key";

export interface Session {
  readonly key: string;
  /** The API said 401: the shell asks for a key. */
  readonly refused: boolean;
}

let session: Session = { key: stored(), refused: false };
const watchers = new Set<() => void>();

function stored(): string {
  try {
    return globalThis.sessionStorage?.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function change(next: Session): void {
  session = next;
  for (const watcher of watchers) watcher();
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function authorization(): Record<string, string> {
  return session.key ? { Authorization: `Bearer ${session.key}` } : {};
}

/** Use a key from now on; "" forgets it. */
export function takeApiKey(key: string): void {
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Kept in memory alone: it lasts until the page is left.
  }
  change({ key, refused: false });
}

/** The API refused the key `tried`; an answer to an older key says nothing about the present one. */
export function refuseKey(tried: string): void {
  if (tried === session.key && !session.refused) change({ ...session, refused: true });
}

export function currentKey(): string {
  return session.key;
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, () => session);
}
