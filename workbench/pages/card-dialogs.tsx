import { useState } from 'react';
import type {
  Card,
  CountryCode,
  LimitInterval,
  SpendingControlsRequest,
  UpdateCardRequest,
} from '../../client/generated/types.gen.ts';
import { changedFields } from '../changed-fields.ts';
import { formatMoney } from '../format.ts';
import { useAction } from '../reading.ts';
import {
  Dialog,
  Form,
  FormDialog,
  LongField,
  MoneyField,
  SelectField,
  TextField,
  type Typed,
} from '../ui/form.tsx';
import { Button, buttonClass, Copy, Note, Time } from '../ui/parts.tsx';
import { useWorkbench } from '../workbench.ts';
import css from './card.module.css';
import { Quote } from './cards.tsx';

export type CardDialogName =
  | 'topup'
  | 'withdraw'
  | 'freeze'
  | 'unfreeze'
  | 'block'
  | 'edit'
  | 'controls'
  | 'reveal';

interface Props {
  card: Card;
  onClose: () => void;
}

/** What can be done with a card. */
export function CardDialog({ name, ...props }: Props & { name: CardDialogName }) {
  switch (name) {
    case 'topup':
      return <TopUp {...props} />;
    case 'withdraw':
      return <Withdraw {...props} />;
    case 'edit':
      return <Edit {...props} />;
    case 'controls':
      return <EditControls {...props} />;
    case 'reveal':
      return <Reveal {...props} />;
    default:
      return <ChangeStatus change={name} {...props} />;
  }
}

function TopUp({ card, onClose }: Props) {
  const { api, say } = useWorkbench();
  const [cents, setCents] = useState<number | null>(null);
  const topUp = useAction(
    (body: { amount: number }, options) => api.topups.create(card.id, body, options),
    ({ status }) => {
      say(status === 'succeeded' ? 'The money is on the card.' : 'The top-up is pending.');
      onClose();
    },
  );
  return (
    <FormDialog title="Top up" action={topUp} submit="Top up" onClose={onClose} toInput={amountOf}>
      <MoneyField name="amount" label="Amount in dollars" onCents={setCents} />
      <Quote type="card_topup" cents={cents} />
    </FormDialog>
  );
}

function Withdraw({ card, onClose }: Props) {
  const { api, say } = useWorkbench();
  const withdraw = useAction(
    (body: { amount: number }, options) => api.withdrawals.create(card.id, body, options),
    ({ status }) => {
      say(status === 'succeeded' ? 'The money is in your balance.' : 'The withdrawal is pending.');
      onClose();
    },
  );
  return (
    <FormDialog title="Withdraw" action={withdraw} submit="Withdraw" onClose={onClose} toInput={amountOf}>
      <MoneyField
        name="amount"
        label="Amount in dollars"
        hint={`The card has ${formatMoney(card.available_balance)} available. There is no fee.`}
      />
    </FormDialog>
  );
}

const amountOf = (typed: Typed) => ({ amount: typed.money('amount') ?? 0 });

const CHANGES = {
  freeze: {
    title: 'Freeze this card?',
    about: 'Authorizations decline until you unfreeze it.',
    done: 'The card is frozen.',
  },
  unfreeze: {
    title: 'Unfreeze this card?',
    about: 'It can be used again at once.',
    done: 'The card is active.',
  },
  block: {
    title: 'Block this card for good?',
    about: 'This can’t be undone. What is available on it goes back to your balance.',
    done: 'The card is blocked.',
  },
};

function ChangeStatus({ change, card, onClose }: Props & { change: keyof typeof CHANGES }) {
  const { api, say } = useWorkbench();
  const { title, about, done } = CHANGES[change];
  const act = useAction(
    (_: Record<string, never>, options) => api.cards[change](card.id, options),
    () => {
      say(done);
      onClose();
    },
  );
  return (
    <FormDialog
      title={title}
      action={act}
      submit={title.split(' ')[0] ?? ''}
      isDestroying={change === 'block'}
      onClose={onClose}
      toInput={() => ({})}
    >
      <p>{about}</p>
    </FormDialog>
  );
}

/** As it was when the dialog was opened: what is on the screen is read again while somebody types. */
const useOpened = (card: Card): Card => useState(card)[0];

function Edit({ card, onClose }: Props) {
  const { api, say } = useWorkbench();
  const opened = useOpened(card);
  const entries = Object.entries(opened.metadata);
  const rows = useRows(entries.length + 1);
  const update = useAction(
    (body: UpdateCardRequest, options) => api.cards.update(card.id, body, options),
    () => {
      say('The card is changed.');
      onClose();
    },
  );
  const toInput = (typed: Typed): UpdateCardRequest | null => {
    const named = rows.ids.flatMap((row) => {
      const key = typed.text(`key-${row}`);
      return key === undefined ? [] : [[key, typed.text(`value-${row}`) ?? ''] as const];
    });
    const metadata = changedFields<Record<string, string | null>>(
      Object.fromEntries(entries.map(([key, value]) => [key, value.trim()])),
      { ...Object.fromEntries(entries.map(([key]) => [key, null])), ...Object.fromEntries(named) },
    );
    const changed = changedFields<UpdateCardRequest>(opened, {
      card_name: typed.text('card_name') ?? null,
      email: typed.text('email') ?? null,
    });
    return metadata === null ? changed : { ...changed, metadata };
  };
  return (
    <FormDialog title="Edit the card" action={update} submit="Save" onClose={onClose} toInput={toInput}>
      <TextField name="card_name" label="Label" defaultValue={opened.card_name ?? ''} />
      <TextField name="email" label="Email" type="email" defaultValue={opened.email ?? ''} />
      <fieldset className={css.rows}>
        <legend>Metadata</legend>
        {rows.ids.map((row) => (
          <div key={row} className={css.row}>
            <label>
              Key
              <input name={`key-${row}`} defaultValue={entries[row]?.[0] ?? ''} />
            </label>
            <label>
              Value
              <input name={`value-${row}`} defaultValue={entries[row]?.[1] ?? ''} />
            </label>
            <Button aria-label={`Remove row ${row + 1}`} onClick={() => rows.remove(row)}>
              Remove
            </Button>
          </div>
        ))}
        <Button small onClick={rows.add}>
          Add a key
        </Button>
      </fieldset>
    </FormDialog>
  );
}

const INTERVALS: LimitInterval[] = ['per_authorization', 'daily', 'weekly', 'monthly', 'yearly', 'all_time'];

function EditControls({ card, onClose }: Props) {
  const { api, say } = useWorkbench();
  const controls = useOpened(card).spending_controls;
  const limits = controls?.spending_limits ?? [];
  const rows = useRows(limits.length);
  const update = useAction(
    (spending_controls: SpendingControlsRequest, options) =>
      api.cards.update(card.id, { spending_controls }, options),
    () => {
      say('The controls are changed.');
      onClose();
    },
  );
  const toInput = (typed: Typed): SpendingControlsRequest | null => {
    const limitsTyped = rows.ids.map((row) => ({
      amount: typed.money(`amount-${row}`) ?? 0,
      interval: typed.text(`interval-${row}`) as LimitInterval,
      categories: typed.words(`categories-${row}`),
    }));
    const changed = changedFields<SpendingControlsRequest>(controls ?? {}, {
      allowed_categories: typed.words('allowed_categories'),
      blocked_categories: typed.words('blocked_categories'),
      allowed_merchant_countries: typed.words('allowed_merchant_countries') as CountryCode[] | null,
      blocked_merchant_countries: typed.words('blocked_merchant_countries') as CountryCode[] | null,
      spending_limits: limitsTyped.length === 0 ? null : limitsTyped,
    });
    // The API replaces all controls, so those that the card has by now go with them.
    return changed && { ...(card.spending_controls as SpendingControlsRequest | null), ...changed };
  };
  return (
    <FormDialog title="Controls and limits" action={update} submit="Save" onClose={onClose} toInput={toInput}>
      <Words
        name="allowed_categories"
        label="Only these merchant categories"
        value={controls?.allowed_categories}
      />
      <Words
        name="blocked_categories"
        label="None of these merchant categories"
        value={controls?.blocked_categories}
      />
      <Words
        name="allowed_merchant_countries"
        label="Only merchants of these countries"
        value={controls?.allowed_merchant_countries}
      />
      <Words
        name="blocked_merchant_countries"
        label="No merchants of these countries"
        value={controls?.blocked_merchant_countries}
      />
      <fieldset className={css.rows}>
        <legend>Limits</legend>
        {rows.ids.map((row) => (
          <div key={row} className={`${css.row} ${css.limit}`}>
            <MoneyField name={`amount-${row}`} label="Dollars" defaultCents={limits[row]?.amount ?? null} />
            <SelectField
              name={`interval-${row}`}
              label="Interval"
              defaultValue={limits[row]?.interval ?? 'daily'}
              options={INTERVALS.map((interval) => [interval, interval.replaceAll('_', ' ')])}
            />
            <TextField
              name={`categories-${row}`}
              label="Categories"
              placeholder="all"
              defaultValue={limits[row]?.categories?.join(' ') ?? ''}
            />
            <Button aria-label={`Remove limit ${row + 1}`} onClick={() => rows.remove(row)}>
              Remove
            </Button>
          </div>
        ))}
        <Button small onClick={rows.add}>
          Add a limit
        </Button>
      </fieldset>
    </FormDialog>
  );
}

const Words = ({
  name,
  label,
  value,
}: {
  name: string;
  label: string;
  value: string[] | null | undefined;
}) => (
  <LongField name={name} label={label} rows={1} placeholder="any" defaultValue={value?.join(' ') ?? ''} />
);

/** Rows that can be added and removed. Their numbers stay, so that what is typed stays with them. */
function useRows(count: number) {
  const [ids, setIds] = useState(() => Array.from({ length: count }, (_, row) => row));
  return {
    ids,
    add: () => setIds([...ids, Math.max(-1, ...ids) + 1]),
    remove: (row: number) => setIds(ids.filter((id) => id !== row)),
  };
}

/** The page never has the number: it opens a reveal link, which shows it once. */
function Reveal({ card, onClose }: Props) {
  const { api } = useWorkbench();
  const make = useAction((_: Record<string, never>) => api.cards.createRevealLink(card.id));
  return (
    <Dialog title="Reveal the number" isBusy={make.isPending} onClose={onClose}>
      {make.data === undefined ? (
        <Form action={make} submit="Make a link" onCancel={onClose} toInput={() => ({})}>
          <p>
            A page of its own shows the number, CVV and expiry once, and hides them after a minute. Opening it
            counts as a reveal: 3 in a minute, 20 in a day.
          </p>
        </Form>
      ) : (
        <>
          <p>
            This link opens once, until <Time at={make.data.expires_at} />. Treat it as the card&rsquo;s
            number.
          </p>
          <div>
            <a
              className={buttonClass('primary')}
              href={make.data.url}
              target="_blank"
              rel="noopener noreferrer"
              onClick={onClose}
            >
              Show the card&rsquo;s number
            </a>
            <Copy text={make.data.url} what="link" />
          </div>
          <Note>It opens in a new tab.</Note>
        </>
      )}
    </Dialog>
  );
}
