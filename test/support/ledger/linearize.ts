import assert from 'node:assert/strict';
import type pg from 'pg';
import { type Posting, transferId } from '../../../ledger/posting.ts';
import { isTracked, Model } from './model.ts';
import type { Observation } from './observe.ts';

/**
 * Whether what concurrent clients were told fits one order of the operations, each at one moment between its question
 * and its answer: the ledger's own order (seq). In that order the model has to apply all that is in the ledger, with
 * the answers that were given; every refusal and replay has to be the model's answer at some moment of its time; and
 * the ledger's accounts have to be the model's. All accounts have to be open before: a refusal that finds none does
 * not wait for who is about to open it, so it would fit other orders alone.
 */
export async function assertLinearizable(owner: pg.Client, observations: Observation[]): Promise<void> {
  const calls = await callsOf(owner, observations);
  const others = observations.filter(({ answer }) => answer.outcome !== 'applied');
  const windows = new Map(others.map((other) => [other, windowOf(other, calls)]));
  let unexplained = others;
  const model = new Model();
  for (let position = 0; position <= calls.length; position++) {
    unexplained = unexplained.filter((other) => {
      const [from, to] = windows.get(other) as [number, number];
      if (position < from || position > to) return true;
      return !isSame(model.decide(other.posting).answer, other.answer);
    });
    const call = calls[position];
    if (call === undefined) break;
    const { answer, commit } = model.decide(call.posting);
    assert.equal(answer.outcome, 'applied', `the model would not apply ${JSON.stringify(call.posting)}`);
    if (call.applied !== undefined) assert.deepEqual(call.applied.answer, answer);
    commit();
  }
  assert.deepEqual(unexplained, [], 'no order of the operations explains these answers');
  assert.deepEqual(await accountsOf(owner, observations), tracked(model));
}

interface Call {
  posting: Posting;
  askedAt: number;
  heardAt: number;
  /** None where its client lost the answer and was told of a replay. */
  applied: Observation | undefined;
}

/** What is in the ledger, in its order: exactly what someone was told of, in an order that respects time. */
async function callsOf(owner: pg.Client, observations: Observation[]): Promise<Call[]> {
  const told = observations.filter(
    ({ answer }) => answer.outcome === 'applied' || answer.outcome === 'replayed',
  );
  const byContent = Map.groupBy(told, ({ posting }) => contentOf(posting));
  const { rows } = await owner.query<{ content: string }>(
    `SELECT operation_id || ' ' || string_agg(id || ':' || amount, ',' ORDER BY seq) AS content
     FROM ledger.transfer WHERE partner_id = ANY ($1) GROUP BY operation_id, fingerprint ORDER BY min(seq)`,
    [partnersOf(observations)],
  );
  assert.deepEqual(new Set(rows.map(({ content }) => content)), new Set(byContent.keys()));
  let latestQuestion = -1;
  return rows.map(({ content }) => {
    const all = byContent.get(content) as [Observation, ...Observation[]];
    const applied = all.filter(({ answer }) => answer.outcome === 'applied');
    assert.ok(applied.length <= 1, `applied ${applied.length} times: ${content}`);
    const askedAt = Math.min(
      ...(applied.length > 0 ? applied : all).map((observation) => observation.askedAt),
    );
    const heardAt = Math.min(...all.map((observation) => observation.heardAt));
    assert.ok(
      heardAt > latestQuestion,
      `an operation that was asked for after ${content} was answered came before it`,
    );
    latestQuestion = Math.max(latestQuestion, askedAt);
    return { posting: all[0].posting, askedAt, heardAt, applied: applied[0] };
  });
}

/** How many calls are certainly before this, and how many at most. */
function windowOf({ askedAt, heardAt }: Observation, calls: Call[]): [number, number] {
  const after = calls.findIndex((call) => call.askedAt > heardAt);
  return [calls.findLastIndex((call) => call.heardAt < askedAt) + 1, after === -1 ? calls.length : after];
}

function contentOf({ operationId, transfers }: Posting): string {
  const parts = transfers.map(({ step, amountCents }) => `${transferId(operationId, step)}:${amountCents}`);
  return `${operationId} ${parts.join(',')}`;
}

function partnersOf(observations: Observation[]): string[] {
  return [...new Set(observations.map(({ posting }) => posting.partnerId))];
}

type State = Record<string, { posted: number; held: number }>;

async function accountsOf(owner: pg.Client, observations: Observation[]): Promise<State> {
  const { rows } = await owner.query<{ id: string; posted: string; held: string }>(
    'SELECT id, posted, held FROM ledger.account WHERE partner_id = ANY ($1) AND tracked ORDER BY id',
    [partnersOf(observations)],
  );
  return Object.fromEntries(
    rows.map(({ id, posted, held }) => [id, { posted: Number(posted), held: Number(held) }]),
  );
}

function tracked({ accounts }: Model): State {
  const entries = [...accounts].filter(([id]) => isTracked(id.slice(0, id.indexOf('/'))));
  return Object.fromEntries(entries.map(([id, { posted, held }]) => [id, { posted, held }]));
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
