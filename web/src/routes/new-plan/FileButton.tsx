import { useRef } from "react";
import { Button } from "../../components/Button";

interface Props {
  label: string;
  onFile: (file: File) => void;
}

/** Opens a JSON file of the reader's machine; it is read in the browser. */
export function FileButton({ label, onFile }: Props) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button onClick={() => input.current?.click()}>{label}</Button>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        hidden
        aria-hidden="true"
        tabIndex={-1}
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) onFile(file);
          event.target.value = "";
        }}
      />
    </>
  );
}
