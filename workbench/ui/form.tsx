import { createContext, type ReactNode, use, useEffect, useId, useRef, useState } from 'react';
import { CardIssuingError } from '../../client/errors.ts';
import { parseMoney } from '../format.ts';
import type { Action } from '../reading.ts';
import css from './form.module.css';
import { Icon } from './icon.tsx';
import parts from './parts.module.css';
import { Button, Problem } from './parts.tsx';

/** What is wrong with a form's fields, by name. */
type Wrong = Record<string, string>;
const WrongContext = createContext<Wrong>({});

export function Dialog({
  title,
  isBusy = false,
  onClose,
  children,
}: {
  title: string;
  /** It stays open until its action has an outcome, so that nobody begins the action a second time. */
  isBusy?: boolean;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    dialog.current?.showModal();
    const first = dialog.current?.querySelector<HTMLElement>('form :is(input, select, textarea)');
    first?.focus();
    // What is typed replaces what is suggested.
    if (first instanceof HTMLInputElement) first.select();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={css.dialog}
      aria-labelledby={heading}
      onCancel={(event) => isBusy && event.preventDefault()}
      // A browser lets a second Escape close it all the same.
      onClose={() => (isBusy ? dialog.current?.showModal() : onClose())}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <button
          type="button"
          className={parts.copy}
          aria-label="Close"
          disabled={isBusy}
          onClick={() => dialog.current?.close()}
        >
          <Icon name="close" />
        </button>
      </header>
      <div className={css.body}>{children}</div>
    </dialog>
  );
}

/** What was typed into a form. Reading a field that is wrong notes it there. */
export class Typed {
  readonly wrong: Wrong = {};
  readonly #data: FormData;

  constructor(form: HTMLFormElement) {
    this.#data = new FormData(form);
  }

  /** Undefined if nothing was typed. */
  text(name: string): string | undefined {
    return String(this.#data.get(name) ?? '').trim() || undefined;
  }

  /** In cents; undefined if nothing was typed. */
  money(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const cents = parseMoney(text);
    if (cents === null) this.wrong[name] = 'Enter an amount in dollars, such as 25 or 12.50.';
    return cents ?? undefined;
  }

  /** What was typed, separated by commas, spaces or lines; null if nothing was. */
  words(name: string): string[] | null {
    const words = (this.text(name) ?? '').split(/[\s,]+/).filter((word) => word !== '');
    return words.length === 0 ? null : words;
  }

  checked(name: string): string[] {
    return this.#data.getAll(name).map(String);
  }
}

/**
 * A form that does one thing. What the API finds wrong with a field is said at the field, and everything else
 * above the buttons.
 */
export function Form<Input>({
  action,
  toInput,
  submit,
  isDestroying = false,
  onCancel,
  children,
}: {
  action: Action<Input>;
  /** What was typed, as the action takes it; null if it changes nothing, which only closes the form. */
  toInput: (typed: Typed) => Input | null;
  submit: string;
  isDestroying?: boolean;
  onCancel?: () => void;
  children?: ReactNode;
}) {
  const [typedWrong, setTypedWrong] = useState<Wrong>({});
  const form = useRef<HTMLFormElement>(null);
  const refused = action.error instanceof CardIssuingError ? action.error.issues : [];
  const wrong = { ...Object.fromEntries(refused.map(({ path, message }) => [path, message])), ...typedWrong };
  const isAllAtFields =
    refused.length > 0 && refused.every(({ path }) => form.current?.elements.namedItem(path));
  return (
    <form
      ref={form}
      className={css.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (action.isPending) return;
        const typed = new Typed(event.currentTarget);
        const input = toInput(typed);
        setTypedWrong(typed.wrong);
        if (Object.keys(typed.wrong).length > 0) return;
        if (input === null) onCancel?.();
        else action.mutate(input);
      }}
    >
      <WrongContext value={wrong}>{children}</WrongContext>
      {action.error && !isAllAtFields && <Problem error={action.error} />}
      {isAllAtFields && (
        <span className={parts.hidden} role="alert">
          {refused.map(({ message }) => message).join(' ')}
        </span>
      )}
      <div className={css.buttons}>
        {onCancel && (
          <Button disabled={action.isPending} onClick={onCancel}>
            Cancel
          </Button>
        )}
        <Button type="submit" kind={isDestroying ? 'destroy' : 'primary'} disabled={action.isPending}>
          {action.isPending ? 'Working…' : submit}
        </Button>
      </div>
    </form>
  );
}

/** A dialog that does one thing. Its action closes it once that is done. */
export function FormDialog<Input>({
  title,
  onClose,
  ...form
}: { title: string; onClose: () => void } & React.ComponentProps<typeof Form<Input>>) {
  return (
    <Dialog title={title} isBusy={form.action.isPending} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint?: ReactNode;
}

/** A label, what it labels, a hint, and what is wrong. */
function Field({
  name,
  label,
  hint,
  children,
}: FieldProps & {
  children: (of: { id: string; 'aria-invalid': boolean; 'aria-describedby': string }) => ReactNode;
}) {
  const id = useId();
  const wrong = Object.entries(use(WrongContext)).find(
    ([path]) => path === name || path.startsWith(`${name}.`),
  );
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-invalid': wrong !== undefined, 'aria-describedby': `${id}-about` })}
      <span id={`${id}-about`} className={wrong ? css.wrong : css.hint}>
        {wrong?.[1] ?? hint}
      </span>
    </div>
  );
}

export function TextField({
  name,
  label,
  hint,
  ...input
}: FieldProps & Omit<React.ComponentProps<'input'>, 'name' | 'id'>) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(of) => <input name={name} autoComplete="off" {...input} {...of} />}
    </Field>
  );
}

/** @param onCents told of each amount that is typed; null while it is none */
export function MoneyField({
  name,
  label,
  hint,
  onCents,
  defaultCents,
  ...input
}: FieldProps & {
  onCents?: (cents: number | null) => void;
  defaultCents?: number | null;
} & Omit<React.ComponentProps<'input'>, 'name' | 'id'>) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(of) => (
        <input
          name={name}
          inputMode="decimal"
          autoComplete="off"
          placeholder="0.00"
          {...(defaultCents != null && { defaultValue: plain(defaultCents) })}
          onChange={({ target }) => onCents?.(parseMoney(target.value))}
          {...input}
          {...of}
        />
      )}
    </Field>
  );
}

/** `12.50` of 1250 cents. */
const plain = (cents: number): string => {
  const digits = String(cents).padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
};

export function LongField({
  name,
  label,
  hint,
  ...area
}: FieldProps & Omit<React.ComponentProps<'textarea'>, 'name' | 'id'>) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(of) => <textarea name={name} rows={3} autoComplete="off" {...area} {...of} />}
    </Field>
  );
}

export function SelectField({
  name,
  label,
  hint,
  options,
  ...select
}: FieldProps & { options: readonly (readonly [value: string, label: string])[] } & Omit<
    React.ComponentProps<'select'>,
    'name' | 'id'
  >) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(of) => (
        <select name={name} {...select} {...of}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField({
  name,
  label,
  value = 'on',
  ...input
}: { name: string; label: string; value?: string } & Omit<React.ComponentProps<'input'>, 'name' | 'type'>) {
  return (
    <label className={css.check}>
      <input type="checkbox" name={name} value={value} {...input} />
      {label}
    </label>
  );
}

/** Fields side by side. */
export const FieldRow = ({ children }: { children: ReactNode }) => <div className={css.side}>{children}</div>;

/** Checkboxes for a short list of options. */
export function ChecksField({
  name,
  label,
  hint,
  options,
  chosen,
}: FieldProps & { options: readonly string[]; chosen: readonly string[] }) {
  const { [name]: wrong } = use(WrongContext);
  return (
    <fieldset className={css.field}>
      <legend>{label}</legend>
      <div className={css.checks}>
        {options.map((option) => (
          <CheckField
            key={option}
            name={name}
            value={option}
            label={option}
            defaultChecked={chosen.includes(option)}
          />
        ))}
      </div>
      <span className={wrong ? css.wrong : css.hint}>{wrong ?? hint}</span>
    </fieldset>
  );
}
