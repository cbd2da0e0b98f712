import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { FileButton } from "../../components/FileButton";
import styles from "./Fleet.module.css";
import { EXAMPLE } from "./file";

interface Props {
  file: string;
  open: boolean;
  onOpen: (open: boolean) => void;
  onChange: (file: string) => void;
  onFiles: (files: readonly File[]) => void;
  onShare: () => void;
  isPending: boolean;
}

/** The question: a fleet file, typed, dropped or opened. */
export function FleetFile({ file, open, onOpen, onChange, onFiles, onShare, isPending }: Props) {
  return (
    <details className={styles.file} open={open} onToggle={(event) => onOpen(event.currentTarget.open)}>
      <summary>Fleet file</summary>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          onShare();
        }}
      >
        <Field label="Pools and jobs, as YAML or JSON" note="The same file as `meshwright fleet FILE`.">
          {(control) => (
            <textarea
              {...control}
              rows={Math.min(24, Math.max(8, file.split("\n").length + 1))}
              spellCheck={false}
              value={file}
              onChange={(event) => onChange(event.target.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onShare();
              }}
            />
          )}
        </Field>
        <div className={styles.actions}>
          <Button type="submit" look="primary" disabled={isPending || file.trim() === ""}>
            {isPending ? "Sharing\u2026" : "Share the nodes"}
          </Button>
          <FileButton label="Open a file" accept=".yaml,.yml,.json" onFiles={onFiles} />
          <Button onClick={() => onChange(EXAMPLE)}>Use the example</Button>
        </div>
      </form>
    </details>
  );
}
