import { useState } from "react";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import styles from "./Fleet.module.css";

interface Props {
  disabled: boolean;
  onAsk: (lost: string, fewest: boolean) => void;
}

/** Nodes are lost, or the file above has changed: the next answer begins with this one. */
export function AskAgain({ disabled, onAsk }: Props) {
  const [lost, setLost] = useState("");
  const [fewest, setFewest] = useState(false);
  return (
    <section aria-labelledby="fleet-again">
      <h2 id="fleet-again">Share again from this answer</h2>
      <p>What jobs got here is what they hold then; a job that the file names anew arrives.</p>
      <form
        className={styles.again}
        onSubmit={(event) => {
          event.preventDefault();
          onAsk(lost, fewest);
        }}
      >
        <TextField
          label="Nodes that are gone"
          note="names or host lists such as h[03-04]; empty: none"
          value={lost}
          onChange={setLost}
        />
        <label className={styles.check}>
          <input type="checkbox" checked={fewest} onChange={(event) => setFewest(event.target.checked)} />
          Move as few jobs as possible
        </label>
        <Button type="submit" disabled={disabled}>
          Share again
        </Button>
      </form>
    </section>
  );
}
