import { useRef } from "react";
import { Button } from "./Button";

interface Props {
  label: string;
  onFiles: (files: readonly File[]) => void;
  /** What the browser offers first; the reader may choose anything. */
  accept?: string;
  several?: boolean;
}

/** Opens files of the reader's machine. */
export function FileButton({ label, onFiles, accept, several = false }: Props) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button onClick={() => input.current?.click()}>{label}</Button>
      <input
        ref={input}
        type="file"
        accept={accept}
        multiple={several}
        hidden
        aria-hidden="true"
        tabIndex={-1}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </>
  );
}
