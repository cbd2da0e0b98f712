/**
 * How is a value kept in the address while it changes fast?  It changes at once here, and is written when it stands
 * still: browsers refuse hundreds of addresses in a row.  Back, forward and links are read at once.
 */

import { useCallback, useEffect, useRef, useState } from "react";
import { useLater } from "./later";

/** `said`: what the address says now.  `write` must lead to `said` becoming the value. */
export function useKept<T>(
  said: T,
  write: (value: T) => void,
  afterMs: number,
): [T, (value: T | ((before: T) => T)) => void] {
  const [value, setValue] = useState(said);
  const text = JSON.stringify(said);
  const written = useRef(text);
  const later = useLater();
  const latest = useRef(write);
  latest.current = write;

  useEffect(() => {
    if (text === written.current) return;
    written.current = text;
    setValue(JSON.parse(text) as T);
  }, [text]);

  useEffect(() => {
    const next = JSON.stringify(value);
    if (next === written.current) return;
    return later(() => {
      written.current = next;
      latest.current(value);
    }, afterMs);
  }, [value, afterMs, later]);

  return [value, useCallback((next: T | ((before: T) => T)) => setValue(next), [])];
}
