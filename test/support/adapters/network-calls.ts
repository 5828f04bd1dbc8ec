import { TRANSFER_DIRECTIONS } from '../../../domain/transfer.ts';
import type { CardNetwork } from '../../../issuers/card-network.ts';
import { issuance, statusChange, transfer } from './network-requests.ts';

export interface Call {
  name: keyof CardNetwork;
  make(network: CardNetwork): Promise<unknown>;
  method: 'GET' | 'POST';
  path: string;
  body?: object;
  /** Answers that are handed on. */
  definite: readonly object[];
  /** Answers of the right envelope that are not. */
  unreadable: readonly object[];
  /** The envelope around an answer. */
  answered(answer: object): object;
  /** The same, about something else. */
  about(other: string, answer: object): object;
}

const issued = { status: 'issued', networkCardId: 'sim_1', last4: '1234', expMonth: 2, expYear: 2030 };
const accepted = { status: 'accepted' };
const declined = { status: 'declined', reason: 'declined_by_network' };
const failed = { status: 'failed', reason: 'failed_at_network' };
const unknown = { status: 'unknown' };
const succeeded = { status: 'succeeded' };
const details = { pan: '4242424242424242', cvv: '007', expMonth: 2, expYear: 2030 };
const freeText = { status: 'declined', reason: 'Ada leaked' };
const strange = { status: 'leaked' };

const ofToken = (field: string, token: string): Pick<Call, 'answered' | 'about'> => ({
  answered: (answer) => ({ token, [field]: answer }),
  about: (other, answer) => ({ token: other, [field]: answer }),
});

const issue = issuance(0);
const freeze = statusChange('sim_1', 'frozen');

type Ask = Pick<Call, 'name' | 'make'>;

/** Asking for an operation and looking it up are answered alike; only a look-up can find none. */
function askedAndLookedUp(
  ask: Ask,
  lookUp: Ask,
  operation: {
    path: string;
    request: { token: string };
    field: string;
    success: object;
    unreadable: readonly object[];
  },
): Call[] {
  const { path, request, unreadable } = operation;
  const definite = [operation.success, accepted, declined, failed];
  const envelope = ofToken(operation.field, request.token);
  return [
    {
      ...ask,
      method: 'POST',
      path,
      body: request,
      definite,
      unreadable: [unknown, ...unreadable],
      ...envelope,
    },
    {
      ...lookUp,
      method: 'GET',
      path: `${path}/${request.token}`,
      definite: [...definite, unknown],
      unreadable,
      ...envelope,
    },
  ];
}

export const CALLS: readonly Call[] = [
  ...askedAndLookedUp(
    { name: 'issueCard', make: (network) => network.issueCard(issue) },
    { name: 'lookUpIssuance', make: (network) => network.lookUpIssuance(issue.token) },
    {
      path: '/issuances',
      request: issue,
      field: 'issuance',
      success: issued,
      unreadable: [
        { status: 'issued' },
        { ...issued, last4: '12345' },
        { ...issued, expMonth: 13 },
        freeText,
        strange,
      ],
    },
  ),
  ...TRANSFER_DIRECTIONS.flatMap((direction) => {
    const asked = transfer(direction, 'sim_1', 0);
    const { direction: _, ...request } = asked;
    return askedAndLookedUp(
      { name: 'transfer', make: (network) => network.transfer(asked) },
      { name: 'lookUpTransfer', make: (network) => network.lookUpTransfer(asked) },
      {
        path: `/${direction}s`,
        request,
        field: 'transfer',
        success: succeeded,
        unreadable: [issued, freeText, strange],
      },
    );
  }),
  {
    name: 'changeCardStatus',
    make: (network) => network.changeCardStatus(freeze),
    method: 'POST',
    path: '/status-changes',
    body: freeze,
    definite: [{ status: 'applied' }, { status: 'refused', reason: 'refused_by_network' }],
    unreadable: [accepted, unknown, strange, { status: 'refused' }],
    ...ofToken('statusChange', freeze.token),
  },
  {
    name: 'revealCard',
    make: (network) => network.revealCard({ cardId: 'card_1', networkCardId: 'sim/1' }),
    method: 'GET',
    path: '/cards/sim%2F1/details',
    definite: [details],
    unreadable: [
      { ...details, pan: '42424242424' },
      { ...details, cvv: '12' },
      { ...details, expYear: 30 },
      { ...details, pan: undefined },
    ],
    answered: (answer) => ({ networkCardId: 'sim/1', details: answer }),
    about: (other, answer) => ({ networkCardId: other, details: answer }),
  },
];
