import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import { createPartner } from '../../../accounts/partners.ts';
import { completeIssuance } from '../../../cards/end-issuance.ts';
import {
  beginIssuance,
  type FundingContext,
  issueInTestMode,
  type TestIssuanceContext,
} from '../../../cards/issue.ts';
import { setCurrentProduct } from '../../../cards/products.ts';
import type { CreateCardRequest } from '../../../cards/resource.ts';
import type { ClaimOperation } from '../../../domain/claim-operation.ts';
import type { Mode } from '../../../domain/mode.ts';
import { testCardIssuer } from '../../../issuers/derived-cards.ts';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import {
  type Claim,
  claimIdempotencyKey,
  type KeyedRequest,
  newResourceId,
} from '../../../requests/claim.ts';
import type { OperatorContext } from '../../../requests/operator-context.ts';
import { sealRequest } from '../../../requests/response.ts';
import { connectTo, createTestDatabase, openOperatorOrm, operatorUrlOf, ownerUrlOf } from '../postgres.ts';

export interface TestCommands {
  databaseUrl: string;
  /** As the service works. */
  context: FundingContext & TestIssuanceContext;
  /** As the operator's command line works, and the URL that it has. */
  operator: OperatorContext;
  operatorUrl: string;
  owner: pg.Client;
  /** Another connection as the owner, for the caller to end. */
  connect(): ReturnType<typeof connectTo>;
  /** An account with a balance in both modes. */
  createFundedPartner(amountCents: number): Promise<string>;
  /** What POST /cards does before it starts the workflow. */
  claimCard(claim: TestClaim): Promise<Claim<'create_card'>>;
  /** What a request about a card does before it starts its workflow. @returns the claim's id */
  claimOf(
    operation: ClaimOperation,
    about: { partnerId: string; mode: Mode; cardId: string },
    request: unknown,
  ): Promise<string>;
  /** An active card of the account, whose balance has to cover it. @returns its id */
  createActiveCard(partnerId: string, mode: Mode, amountCents: number): Promise<string>;
  close(): Promise<void>;
}

export interface TestClaim {
  partnerId: string;
  mode: Mode;
  request: CreateCardRequest;
  key?: string;
  fingerprint?: Buffer;
  leaseMs?: number;
}

export const begun = async <State>(
  begin: (context: FundingContext, claimId: string) => Promise<{ state: State }>,
  context: FundingContext,
  claimId: string,
): Promise<State> => (await begin(context, claimId)).state;

/** What the API makes of a request before it claims its key. */
export function keyedRequest<Operation extends ClaimOperation>(
  operation: Operation,
  cardId: string | null,
  request: unknown,
  {
    partnerId,
    mode,
    key = randomUUID(),
    fingerprint,
  }: Pick<TestClaim, 'partnerId' | 'mode' | 'key' | 'fingerprint'>,
): KeyedRequest<Operation> {
  return {
    ...{ claimId: newId('claim'), partnerId, mode, key, operation, cardId },
    resourceId: newResourceId(operation),
    fingerprint: fingerprint ?? Buffer.from(JSON.stringify(request)),
    requestId: newId('req'),
    apiKeyId: null,
    clientAddress: null,
  };
}

/**
 * The commands on a fresh database with a current product, without API, worker and Temporal.
 * @param prepare changes the database before anybody connects to it
 */
export async function openCommands(
  prepare: (databaseUrl: string) => Promise<unknown> = async () => undefined,
): Promise<TestCommands> {
  const databaseUrl = await createTestDatabase();
  await prepare(databaseUrl);
  const orm = await openOrm({ databaseUrl, poolSize: 8, applicationName: 'commands-test' });
  const ring = new KeyRing([{ id: 'k1', secret: randomBytes(32) }]);
  const connect = () => connectTo(ownerUrlOf(databaseUrl));
  const owner = await connect();
  const operatorOrm = await openOperatorOrm(databaseUrl);
  const operator = { orm: operatorOrm, ring, actor: 'test' };
  await setCurrentProduct(operator, { code: 'USD', bin: '424242', scheme: 'visa' });
  const context: TestCommands['context'] = {
    ...{ orm, ring, liveNetworkConfigured: true, issueTestCard: testCardIssuer(ring) },
  };
  const claim = <Operation extends ClaimOperation>(
    operation: Operation,
    cardId: string | null,
    request: unknown,
    { leaseMs = 60_000, ...given }: Omit<TestClaim, 'request'>,
  ) => {
    const keyed = keyedRequest(operation, cardId, request, given);
    const sealedRequest = sealRequest(ring, keyed.claimId, request);
    return claimIdempotencyKey({ orm, ring }, { ...keyed, sealedRequest, leaseMs });
  };
  return {
    context,
    operator,
    databaseUrl,
    operatorUrl: operatorUrlOf(databaseUrl),
    owner,
    connect,
    async createFundedPartner(amountCents) {
      const { id } = await createPartner(operator, { name: 'Partner', secureDetailsEnabled: false });
      for (const mode of ['test', 'live'] as const) {
        await adjustBalance(operator, { partnerId: id, mode, amountCents, reason: 'a test', key: null });
      }
      return id;
    },
    claimCard: ({ request, ...rest }) => claim('create_card', null, request, rest),
    async claimOf(operation, { cardId, ...tenant }, request) {
      const claimed = await claim(operation, cardId, request, tenant);
      assert.equal(claimed.outcome, 'claimed');
      return claimed.outcome === 'claimed' ? claimed.claimId : '';
    },
    async createActiveCard(partnerId, mode, amountCents) {
      const request = { amount: amountCents, external_ref: randomUUID() };
      if (mode === 'test') {
        const keyed = keyedRequest('create_card', null, request, { partnerId, mode });
        assert.equal((await issueInTestMode(context, keyed, request)).response.status, 201);
        return keyed.resourceId;
      }
      const claimed = await claim('create_card', null, request, { partnerId, mode });
      assert.ok(claimed.outcome === 'claimed');
      await beginIssuance(context, claimed.claimId);
      const issued = { networkCardId: claimed.claimId, last4: '4242', expMonth: 12, expYear: 2030 };
      await completeIssuance(context, claimed.claimId, issued);
      return claimed.resourceId;
    },
    async close() {
      await owner.end();
      await orm.close();
      await operatorOrm.close();
    },
  };
}

export async function readUsage({ context }: TestCommands, partnerId: string, mode: Mode): Promise<number[]> {
  const [usage] = await query<{ open: number; loaded: string }>(
    context.orm.em.fork(),
    'SELECT open_cards AS open, loaded_cents AS loaded FROM account_usage WHERE partner_id = $1 AND mode = $2',
    [partnerId, mode],
  );
  return [usage?.open ?? -1, Number(usage?.loaded)];
}
