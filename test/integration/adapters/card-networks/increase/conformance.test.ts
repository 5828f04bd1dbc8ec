import { madeFor, startIncreaseClient } from '../../../../support/adapters/increase.ts';
import { describeConformance } from '../conformance.ts';

describeConformance('Increase', async () => {
  const { fake, client, stop } = await startIncreaseClient();
  return {
    network: client,
    cardsOf: async (token) => madeFor(fake, token).cards.filter((status) => status === 'active').length,
    movedTo: async (networkCardId) => {
      const card = fake.bank.books.cards.find(({ id }) => id === networkCardId);
      return fake.bank.books.cents[card?.account_id ?? ''] ?? 0;
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
