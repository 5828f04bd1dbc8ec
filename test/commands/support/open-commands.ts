import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { testCardIssuer } from '../../../adapters/card-network/test-cards.ts';
import { activateCard } from '../../../commands/activate-card.ts';
import { adjustBalance } from '../../../commands/adjust-balance.ts';
import { type Claim, claimIdempotencyKey } from '../../../commands/claim-idempotency-key.ts';
import type { IssuanceContext } from '../../../commands/command-context.ts';
import { createPartner } from '../../../commands/create-partner.ts';
import { sealRequest } from '../../../commands/idempotency-response.ts';
import { openIssuance } from '../../../commands/open-issuance.ts';
import { setCurrentProduct } from '../../../commands/set-current-product.ts';
import { KeyRing } from '../../../db/key-ring.ts';
import { newId } from '../../../db/new-id.ts';
import { openOrm } from '../../../db/orm.ts';
import type { ClaimOperation } from '../../../domain/claim-operation.ts';
import type { CreateCardRequest } from '../../../domain/create-card-request.ts';
import { siblingId } from '../../../domain/ids.ts';
import type { Mode } from '../../../domain/mode.ts';
import { createTestDatabase } from '../../support/postgres.ts';

export interface TestCommands {
  context: IssuanceContext;
  /** As the tables' owner. */
  owner: pg.Client;
  /** Another connection as the owner, for the caller to end. */
  connect(): Promise<pg.Client>;
  /** An account with a balance in both modes. */
  createFundedPartner(amountCents: number): Promise<string>;
  /** What POST /cards does before it starts the workflow. */
  claimCard(claim: TestClaim): Promise<Claim>;
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

/** The commands on a fresh database with a current product, without API, worker and Temporal. */
export async function openCommands(): Promise<TestCommands> {
  const databaseUrl = await createTestDatabase();
  const orm = await openOrm({ databaseUrl, poolSize: 8, applicationName: 'commands-test' });
  const ring = new KeyRing([{ id: 'k1', secret: randomBytes(32) }]);
  const connect = async () => {
    const client = new pg.Client(databaseUrl);
    await client.connect();
    return client;
  };
  const owner = await connect();
  const operator = { orm, ring, actor: 'test' };
  await setCurrentProduct(operator, { code: 'USD', bin: '424242', network: 'visa' });
  const context: IssuanceContext = {
    ...{ orm, ring, liveNetworkConfigured: true, issueTestCard: testCardIssuer(ring) },
  };
  const claim = (
    operation: ClaimOperation,
    cardId: string | null,
    request: unknown,
    { partnerId, mode, key = randomUUID(), fingerprint, leaseMs = 60_000 }: Omit<TestClaim, 'request'>,
  ) => {
    const claimId = newId('claim');
    return claimIdempotencyKey(orm.em.fork(), ring, {
      ...{ claimId, partnerId, mode, key, operation, cardId, leaseMs },
      fingerprint: fingerprint ?? Buffer.from(JSON.stringify(request)),
      sealedRequest: sealRequest(ring, claimId, request),
      requestId: newId('req'),
    });
  };
  return {
    context,
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
      const claimed = await claim('create_card', null, request, { partnerId, mode });
      assert.ok(claimed.outcome === 'claimed');
      const opening = await openIssuance(context, claimed.claimId);
      if (opening === 'held') {
        const issued = { networkCardId: claimed.claimId, last4: '4242', expMonth: 12, expYear: 2030 };
        await activateCard(context, claimed.claimId, issued);
      }
      return siblingId('card', claimed.claimId);
    },
    async close() {
      await owner.end();
      await orm.close();
    },
  };
}
