import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { putLabel } from "../../api/queries/plans";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import { Modal } from "../../components/Modal";
import { ProblemNotice } from "../../components/ProblemNotice";
import styles from "./Plan.module.css";

interface Props {
  plan: string;
  onDone: () => void;
}

/** A name that means this plan from now on; what it meant before stays in its history. */
export function LabelForm({ plan, onDone }: Props) {
  const [shown, setShown] = useState(false);
  const [name, setName] = useState("");
  const labelling = useMutation({
    mutationFn: () => putLabel(name.trim(), plan),
    onSuccess: () => {
      setShown(false);
      setName("");
      onDone();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    labelling.mutate();
  };
  return (
    <>
      <Button onClick={() => setShown(true)}>Label</Button>
      <Modal shown={shown} title="Label this plan" onClose={() => setShown(false)}>
        <form onSubmit={submit} className={styles.labelForm}>
          <TextField
            label="Label"
            note="Letters, digits, dot, dash and underscore. A label that exists moves to this plan."
            value={name}
            onChange={(typed) => {
              labelling.reset();
              setName(typed);
            }}
          />
          {labelling.error && <ProblemNotice error={labelling.error} />}
          <div>
            <Button type="submit" look="primary" disabled={name.trim() === "" || labelling.isPending}>
              Set the label
            </Button>
          </div>
        </form>
      </Modal>
    </>
  );
}
