/** Is a file held over the page, and what was dropped?  The whole window takes it, so that no drop leaves the page. */

import { useEffect, useRef, useState } from "react";

const holdsFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/** Whether files are held over the window now; `onFiles` gets those that are dropped together. */
export function useFileDrop(onFiles: (files: readonly File[]) => void): boolean {
  const [held, setHeld] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setHeld(true);
    };
    const leave = (event: DragEvent) => {
      // From one element to another is no leaving.
      if (event.relatedTarget === null) setHeld(false);
    };
    const drop = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setHeld(false);
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return held;
}
