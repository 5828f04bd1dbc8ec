import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode } from '../../../domain/mode.ts';
import { query } from '../../../platform/db/sql.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';
import { until } from '../until.ts';

interface Answered {
  status: number;
  code?: string;
}

/** One operation of its own partner, so that its money can be checked to the cent. */
export interface Operation<End extends Answered = Answered> {
  case: Pick<Case, 'resolve'> & { endings: readonly End[] };
  mode: Mode;
  partner: TestPartner;
  key: string;
  /** Its request, below /v1. */
  path: string;
  body: object;
  workflowIdOf(claim: Claimed): string;
  /** What an operator's signal says. */
  outcomes: { yes: string; no: string };
  isOverdue(stack: TestStack, claim: Claimed): Promise<boolean>;
  /** Asserts that its rows, its events, the network's state and the money match this ending. */
  assertLeft(stack: TestStack, claim: Claimed, ending: End): Promise<void>;
}

/** The claim of an operation, and the id of what it makes, if it makes something. */
export interface Claimed {
  id: string;
  resource_id: string | null;
}

export type Prepare = (kind: Case, stack: TestStack) => Promise<Operation<Ending>>;

/** Retries as a partner would, with the same key, until there is a final response. */
export async function untilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status < 500 && answer.json.error?.code !== 'idempotency_in_flight') return answer;
    await sleep(200);
  }
}

/** Sends its request to another API process, at `http://host:port`. @throws TypeError if that dies */
export async function askAt(
  origin: string,
  { mode, partner, key, path, body }: Pick<Operation, 'mode' | 'partner' | 'key' | 'path' | 'body'>,
): Promise<Answer> {
  const response = await fetch(`${origin}/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${partner.keys[mode]}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

export function ask({ mode, partner, key, path, body }: Operation): Promise<Answer> {
  return partner.call('POST', path, { mode, body, idempotencyKey: key });
}

export function readClaim({ orm }: TestStack, { partner, key }: Operation): Promise<Claimed> {
  return until('the claim', async () => {
    const [row] = await query<Claimed>(
      orm.em.fork(),
      'SELECT id, resource_id FROM idempotency_claim WHERE partner_id = $1 AND key = $2',
      [partner.id, key],
    );
    return row;
  });
}

/** Decides as an operator, if the operation needs one, which is possible once it is overdue. */
export async function resolveWhenOverdue(stack: TestStack, operation: Operation): Promise<void> {
  const { resolve } = operation.case;
  if (resolve === undefined) return;
  const claim = await readClaim(stack, operation);
  await until(`${claim.id} is overdue`, () => operation.isOverdue(stack, claim));
  const workflow = stack.client.workflow.getHandle(operation.workflowIdOf(claim));
  await workflow.signal('resolve', { outcome: operation.outcomes[resolve] });
}

/** Waits for the workflow's end, and asserts that everything about the operation matches the ending of its first response. */
export async function assertEnd(stack: TestStack, operation: Operation, first: Answer): Promise<void> {
  const claim = await readClaim(stack, operation);
  await stack.client.workflow.getHandle(operation.workflowIdOf(claim)).result();

  const ending = operation.case.endings.find(
    ({ status, code }) => status === first.status && code === first.json.error?.code,
  );
  assert.ok(ending, `no ending of ${operation.path} begins with ${first.status} ${first.text}`);
  const again = await ask(operation);
  assert.deepEqual([again.status, again.text], [first.status, first.text]);
  assert.equal(again.headers.get('Idempotent-Replayed'), 'true');
  await operation.assertLeft(stack, claim, ending);
  const audited = await query<{ actor: string }>(
    stack.orm.em.fork(),
    'SELECT actor FROM audit_entry WHERE subject = $1',
    [claim.resource_id],
  );
  assert.deepEqual(audited, operation.case.resolve === undefined ? [] : [{ actor: 'temporal' }]);
}

interface Ending {
  status: 201 | 202 | 402;
  code?: string;
  /** Whether the money is on the card in the end; null: nothing is left of the operation. */
  end: 'loaded' | 'failed' | null;
}

/** An operation, and its outcome, whatever is killed on the way. */
export interface Case {
  amountCents: number;
  funded: boolean;
  /** What an operator decides once it is past its deadline. */
  resolve?: 'yes' | 'no';
  /**
   * More than one if it depends on whether the network had finished, or an operator had decided, before the request was
   * told that the network had accepted.
   */
  endings: readonly Ending[];
}

const LOADED: Ending = { status: 201, end: 'loaded' };
const LOADED_LATER: Ending = { status: 202, end: 'loaded' };
const FAILED_LATER: Ending = { status: 202, end: 'failed' };
const DECLINED: Ending = { status: 402, code: 'provider_declined', end: null };
const NO_FUNDS: Ending = { status: 402, code: 'insufficient_funds', end: null };

const live = (digits: number, ...endings: Ending[]): Case => ({
  amountCents: 10_000 + digits,
  funded: true,
  endings,
});

/**
 * Every outcome of issueCard and of topUpCard, with every behaviour of the simulated network.
 */
export const CASES = {
  'live without funds': { ...live(0, NO_FUNDS), funded: false },
  'live 00': live(0, LOADED),
  'live 41': live(41, LOADED_LATER, LOADED),
  'live 42': live(42, DECLINED),
  'live 43': live(43, FAILED_LATER, DECLINED),
  'live 44': live(44, LOADED),
  'live 45': live(45, LOADED_LATER, LOADED),
  'live 46': live(46, LOADED_LATER, LOADED),
  'live 47 yes': { ...live(47, LOADED_LATER, LOADED), resolve: 'yes' },
  'live 47 no': { ...live(47, FAILED_LATER, DECLINED), resolve: 'no' },
  'live 48': live(48, LOADED),
} as const satisfies Record<string, Case>;

export type CaseName = keyof typeof CASES;
