import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { takeApiKey, useSession } from "../lib/session";
import { Button } from "./Button";
import { Modal } from "./Modal";
import styles from "./Modal.module.css";

/** Asks for an API key when the service wants one. */
export function KeyDialog() {
  const session = useSession();
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const [dismissed, setDismissed] = useState(false);
  const [id, shown] = [useId(), session.refused && !dismissed];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    takeApiKey(typed.trim());
    setTyped("");
    void queries.resetQueries();
  };
  return (
    <>
      {session.refused && dismissed && <AskAgain onPress={() => setDismissed(false)} />}
      <Modal
        shown={shown}
        title="This service asks who you are"
        onClose={() => setDismissed(session.refused)}
      >
        <form onSubmit={submit} className={styles.body}>
          <p>
            {session.key ? "It does not accept the key of this tab. " : ""}
            Give a key with scope <code>plan</code>, or <code>read</code> to look only. On its host,{" "}
            <code>meshwright token create --name you --scope plan</code> makes one.
          </p>
          <div className={styles.field}>
            <label htmlFor={id}>API key or token</label>
            <input
              id={id}
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </div>
          <p>It is kept for this tab only, until the tab is closed.</p>
          <div>
            <Button type="submit" look="primary" disabled={typed.trim() === ""}>
              Use this key
            </Button>
          </div>
        </form>
      </Modal>
    </>
  );
}

function AskAgain({ onPress }: { onPress: () => void }) {
  return (
    <p role="status" className={styles.askAgain}>
      <Button look="primary" onClick={onPress}>
        Enter an API key
      </Button>
    </p>
  );
}
