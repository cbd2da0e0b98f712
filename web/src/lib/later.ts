/**
 * How is the address written a while after a change?  Not once the reader is on the way elsewhere: the page that is
 * shown is then no longer the one that the address names, and writing would lead back.
 */

import { useRouter } from "@tanstack/react-router";
import { useCallback } from "react";

/** `later(write, ms)` writes then, unless what it gives back was called before. */
export function useLater(): (write: () => void, afterMs: number) => () => void {
  const router = useRouter();
  return useCallback(
    (write, afterMs) => {
      const timer = setTimeout(() => {
        if (router.history.location.pathname === router.state.resolvedLocation?.pathname) write();
      }, afterMs);
      return () => clearTimeout(timer);
    },
    [router],
  );
}
