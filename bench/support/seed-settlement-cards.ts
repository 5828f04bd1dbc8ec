import pg from 'pg';
import type { OperatorContext } from '../../commands/accounts/operator-context.ts';
import { createPartner } from '../../commands/accounts/partners.ts';
import { newId } from '../../crypto/new-id.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { ownerUrlOf } from '../../test/support/postgres.ts';

const CARD_CENTS = 1_000_000_000;

export interface BenchCard extends Tenant {
  cardId: string;
}

/** Active cards with more on them than a measurement spends, on as many accounts. */
export async function seedSettlementCards(
  operator: Pick<OperatorContext, 'orm' | 'actor'>,
  databaseUrl: string,
  { accounts, cardsEach }: { accounts: number; cardsEach: number },
): Promise<BenchCard[]> {
  const owner = new pg.Client(ownerUrlOf(databaseUrl));
  await owner.connect();
  const cards: BenchCard[] = [];
  for (let account = 0; account < accounts; account++) {
    const { id: partnerId } = await createPartner(operator, { name: 'Bench', secureDetailsEnabled: false });
    const cardIds = Array.from({ length: cardsEach }, () => newId('card'));
    await owner.query(
      `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, last4,
         exp_month, exp_year, funding_cents, fees, created_at)
       SELECT id, $2, 'live', 'active', id, 'BENCH', 'visa', id, '4242', 1, 2030, $3, '[]', now() FROM unnest($1::text[]) id`,
      [cardIds, partnerId, CARD_CENTS],
    );
    const common = { phase: 'single', amountCents: CARD_CENTS } as const;
    await applyOperation(operator.orm.em.fork(), {
      ...{ operationId: `bench/${partnerId}`, partnerId, mode: 'live' },
      transfers: [
        {
          step: 'fund',
          code: 'fund_usdt',
          debit: 'crypto_clearing',
          credit: 'prepaid',
          phase: 'single',
          amountCents: CARD_CENTS * (cardsEach + 1),
        },
        ...cardIds.map((cardId) => ({
          ...({ ...common, step: cardId, code: 'issue_load', debit: 'prepaid', credit: { cardId } } as const),
        })),
      ],
    });
    cards.push(...cardIds.map((cardId) => ({ cardId, partnerId, mode: 'live' as const })));
  }
  // Of these alone: a table known to be empty is planned as one that stays so.
  await owner.query('VACUUM ANALYZE card, ledger.account');
  await owner.end();
  return cards;
}
