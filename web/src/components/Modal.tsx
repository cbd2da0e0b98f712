import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "./Button";
import styles from "./Modal.module.css";

interface Props {
  shown: boolean;
  title: string;
  onClose: () => void;
  children: ReactNode;
}

/** A dialog above the page; the browser keeps the focus inside and gives it back. */
export function Modal({ shown, title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (shown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [shown]);
  return (
    <dialog ref={dialog} className={styles.modal} aria-label={title} onClose={onClose}>
      {shown && (
        <div className={styles.body}>
          <div className={styles.head}>
            <h2>{title}</h2>
            <Button look="quiet" onClick={onClose}>
              Close
            </Button>
          </div>
          {children}
        </div>
      )}
    </dialog>
  );
}
