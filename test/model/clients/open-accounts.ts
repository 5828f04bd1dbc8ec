import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import { controlSpending, negotiateFees, negotiateLimits } from '../../../accounts/partners.ts';
import { type Account, type Limits, PLATFORM_LIMITS, utcDay } from '../account.ts';
import type { Controls } from '../rules/controls.ts';
import { PLATFORM_PRICES, type Prices } from '../rules/prices.ts';
import { type ServiceParts, untilThere } from './running-service.ts';

/** Low enough to be reached. */
const TIGHT_LIMITS: Limits = { minCents: 700, maxCents: 38_000, maxOpenCards: 4, maxLoadedCents: 600_000 };

const NEW_ACCOUNT = {
  prices: PLATFORM_PRICES,
  controls: null,
  changes: [],
  availableCents: 0,
  openCards: 0,
  loadedCents: 0,
};

/** Creates partners with this much in either mode, each with a test and a live account. The last one has tight limits. */
export async function openAccounts(stack: ServiceParts, startCents: readonly number[]): Promise<Account[]> {
  const opened = startCents.map(async (cents, index) => {
    const partner = await untilThere(() => stack.createPartner(`Model ${index}`));
    const isTight = index === startCents.length - 1;
    if (isTight) await untilThere(() => limit(stack, partner.id, TIGHT_LIMITS));
    const limits = isTight ? TIGHT_LIMITS : PLATFORM_LIMITS;
    return Promise.all(
      (['test', 'live'] as const).map(async (mode): Promise<Account> => {
        const { id: partnerId, keys } = partner;
        const key = randomUUID();
        const adjustment = { partnerId, mode, amountCents: cents, reason: 'the start', key };
        await untilThere(() => adjustBalance(stack.operator, adjustment));
        const made = { made: true, askedAt: 0, heardAt: 0 } as const;
        return {
          ...NEW_ACCOUNT,
          name: `partner ${index} ${mode}`,
          partnerId,
          mode,
          key: keys[mode],
          limits,
          cards: [],
          deposits: [],
          movements: [{ ...made, name: 'start', type: 'adjustment', cents }],
          day: utcDay(),
        };
      }),
    );
  });
  return (await Promise.all(opened)).flat();
}

export async function changePrices(
  stack: ServiceParts,
  accounts: readonly Account[],
  prices: Prices,
): Promise<void> {
  const [account] = accounts;
  if (account === undefined) return;
  await untilThere(() =>
    negotiateFees(stack.operator, account.partnerId, {
      cardActivationCents: prices.activationCents,
      cardFundingBasisPoints: prices.fundingBasisPoints,
      cardFundingMinCents: prices.fundingMinCents,
      transactionFlatCents: prices.transactionCents,
      transactionBasisPoints: prices.transactionBasisPoints,
      declineFlatCents: prices.declineCents,
    }),
  );
  for (const one of accounts) one.prices = prices;
}

export async function changeControls(
  { operator }: ServiceParts,
  accounts: readonly Account[],
  controls: Controls | null,
): Promise<void> {
  const [account] = accounts;
  if (account === undefined) return;
  await untilThere(() => controlSpending(operator, account.partnerId, controls));
  for (const one of accounts) one.controls = controls;
}

async function limit({ operator }: ServiceParts, partnerId: string, limits: Limits): Promise<void> {
  await negotiateLimits(operator, partnerId, {
    minCardCents: limits.minCents,
    maxCardCents: limits.maxCents,
    maxOpenCards: limits.maxOpenCards,
    maxIssuedPerDayCents: limits.maxLoadedCents,
  });
}
