import { madeFor, startIncreaseClient } from '../../support/adapters/increase.ts';
import { describeConformance } from '../conformance.ts';

describeConformance('Increase', async ({ keyLifetimeMs }) => {
  const { fake, client, proxy, pausesMs, stop } = await startIncreaseClient({ keyLifetimeMs });
  const { books } = fake.bank;
  return {
    network: client,
    proxy,
    pausesMs,
    cardsOf: async (token) => madeFor(fake, token).cards.filter((status) => status === 'active').length,
    movedTo: async (networkCardId) => {
      const card = books.cards.find(({ id }) => id === networkCardId);
      return books.cents[card?.account_id ?? ''] ?? 0;
    },
    returnedFrom: async (networkCardId) => {
      const card = books.cards.find(({ id }) => id === networkCardId);
      return books.transfers
        .filter(
          ({ account_id, idempotency_key: key }) =>
            account_id === card?.account_id && key?.startsWith('tru_'),
        )
        .reduce((sum, { amount }) => sum + amount, 0);
    },
    loseNextAnswer: () => {
      fake.faults.add({ fault: 'lost after acting', request: 'POST /account_transfers', times: 1 });
      return 5_000;
    },
    // More than the funding account has.
    refuseNext: () => 2_000_000_000,
    stop,
  };
});
