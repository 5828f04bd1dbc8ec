import { Dialog } from './form.tsx';
import { Copy } from './parts.tsx';
import css from './secret-dialog.module.css';

/** A secret that only the response which made it has. */
export function SecretDialog({
  title,
  secret,
  onClose,
}: {
  title: string;
  secret: string;
  onClose: () => void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>Store it now: it is not shown again.</p>
      <p className={css.secret}>
        <code>{secret}</code> <Copy text={secret} what="secret" />
      </p>
    </Dialog>
  );
}
