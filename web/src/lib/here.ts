/**
 * Is the page that is shown the one that the address names?  Not while the reader is on the way elsewhere: what is
 * written into the address a while after a change would lead back.
 */

import { useRouter } from "@tanstack/react-router";
import { useCallback } from "react";

export function useHere(): () => boolean {
  const router = useRouter();
  return useCallback(
    () => router.history.location.pathname === router.state.resolvedLocation?.pathname,
    [router],
  );
}
