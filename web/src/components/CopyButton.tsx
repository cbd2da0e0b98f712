import { useEffect, useState } from "react";
import { copyText } from "../lib/save";
import { Button } from "./Button";

interface Props {
  /** What is copied. */
  text: string;
  /** What the button says: "Copy file". */
  label: string;
}

const SAYS_MS = 2_000;

/** Puts text into the clipboard, and says whether that worked. */
export function CopyButton({ text, label }: Props) {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setOutcome(""), SAYS_MS);
    return () => clearTimeout(timer);
  });
  return (
    <Button
      onClick={async () => setOutcome((await copyText(text)) ? "Copied" : "Not copied: select it by hand")}
    >
      <span aria-live="polite">{outcome || label}</span>
    </Button>
  );
}
