import type { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import type { ListedMovement } from '../card-network.ts';
import { checkAge, isTooOld, type KeyOptions } from '../key-lifetime.ts';
import { type IncreaseApi, KEY_USED, type Refusal, unavailable } from './increase-api.ts';
import { AccountTransfer } from './wire.ts';

/** A transfer between the funding account and a card's. */
interface Movement {
  key: string;
  /** Our id that the key is derived from. */
  token: string;
  fromAccountId: string;
  toAccountId: string;
  amountCents: number;
  /** Whether its request has its turn already. */
  hasTurn?: boolean;
}

export type KeyedObjects = ReturnType<typeof createKeyedObjects>;

/** The objects that we make at Increase: an idempotency key makes one object, once, and finds it again. */
export function createKeyedObjects(api: IncreaseApi, options: KeyOptions) {
  /** The object that was made with a key; null if there is none. */
  async function find<Body extends { idempotency_key: string | null }>(
    path: string,
    key: string,
    shape: z.ZodType<Body>,
  ): Promise<Body | null> {
    for await (const found of api.list(
      `${path}?idempotency_key=${encodeURIComponent(key)}`,
      'operation',
      shape,
    )) {
      if (found.idempotency_key !== key)
        throw unavailable('it found an object under another key than asked for');
      return found;
    }
    return null;
  }

  /**
   * Makes an object with a key, or finds the one that was made with it. A no counts only if there is none.
   */
  async function create<Body extends { idempotency_key: string | null }>(
    path: string,
    shape: z.ZodType<Body>,
    { key, token, body, hasTurn = false }: Pick<Movement, 'key' | 'token' | 'hasTurn'> & { body: object },
  ): Promise<Body | Refusal> {
    const check = async () => checkAge(token, options);
    const turn = hasTurn ? null : 'operation';
    const answer = await api.act({ method: 'POST', path, body, key, turn, check }, shape);
    if (!('refused' in answer)) return answer;
    const found = await find(path, key, shape);
    if (found !== null) return found;
    if (answer.refused === KEY_USED)
      throw unavailable('an idempotency key of ours belongs to another object');
    return answer;
  }

  async function transfer(movement: Movement): Promise<AccountTransfer | Refusal> {
    const { key, token, fromAccountId, toAccountId, amountCents, hasTurn } = movement;
    const made = await create('/account_transfers', AccountTransfer, {
      key,
      token,
      hasTurn,
      body: {
        account_id: fromAccountId,
        destination_account_id: toAccountId,
        amount: amountCents,
        description: token,
        require_approval: false,
      },
    });
    if ('refused' in made) return made;
    const isAsked =
      made.amount === amountCents &&
      made.account_id === fromAccountId &&
      made.destination_account_id === toAccountId;
    if (!isAsked) throw unavailable(`its transfer ${made.id} has our key, but is another one than asked for`);
    return made;
  }

  return { find, create, transfer, isTooOld: (token: string) => isTooOld(token, options) };
}

/** What a transfer was for, by its key. @returns a null token if the key is not ours */
export function readKey(key: string | null): { kind: ListedMovement['kind']; token: string | null } {
  const [id = '', step] = key?.split('/') ?? [];
  if (isId('card', id) && step === 'transfer') return { kind: 'issuance', token: id };
  if (isId('topup', id)) return { kind: 'topup', token: id };
  if (isId('wdr', id)) return { kind: 'withdrawal', token: id };
  return { kind: 'true_up', token: isId('tru', id) ? id : null };
}
