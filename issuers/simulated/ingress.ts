import type { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import { parseJson } from '../../domain/parse-json.ts';
import { NetworkRequest, readReport } from '../../domain/simulated-network.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import type {
  IngressRoute,
  MessageResult,
  NetworkPost,
  NetworkResponse,
  ReceivedPost,
} from '../card-network.ts';
import { simulatedNetworkCredentials, trustedNetworkSecrets } from './credentials.ts';
import { SIGNATURE_HEADER, verifySignature } from './signature.ts';
import {
  AUTHORIZATIONS_PATH,
  CALLBACK_SUBJECTS,
  CALLBACKS_PATH,
  NetworkCallback,
  TRANSACTIONS_PATH,
} from './wire.ts';

/**
 * What the simulated network posts: callbacks, transactions and requests (docs/operator.md, "Transactions on
 * the simulated network").
 */
export function simulatedIngress(ring: KeyRing): IngressRoute[] {
  const secrets = trustedNetworkSecrets(ring).map(
    (secret) => simulatedNetworkCredentials(secret).callbackSecret,
  );
  const verify = ({ body, headers }: NetworkPost) => {
    const signature = headers[SIGNATURE_HEADER.toLowerCase()]?.toString();
    return secrets.some((secret) => verifySignature(body, signature, secret));
  };
  const route = (path: string, read: (value: unknown) => ReceivedPost): IngressRoute => ({
    path,
    signatureHeader: SIGNATURE_HEADER,
    verify,
    read: ({ body }) => read(parseJson(body)),
  });
  return [
    route(CALLBACKS_PATH, (value) => {
      const callback = NetworkCallback.safeParse(value);
      if (!callback.success) throw unreadable(callback.error);
      const { type, token } = callback.data;
      return {
        handling: 'now',
        messages: [{ type: 'outcome', subject: CALLBACK_SUBJECTS[type], token }],
        respond: () => ({ status: 204, body: null }),
      };
    }),
    route(TRANSACTIONS_PATH, (value) => {
      const said = readReport(value);
      if ('issues' in said) throw unreadable(said);
      return { handling: 'now', messages: [{ type: 'simulated report', said }], respond: respondToReport };
    }),
    route(AUTHORIZATIONS_PATH, (value) => {
      const request = NetworkRequest.safeParse(value);
      if (!request.success) throw unreadable(request.error);
      const { data: said } = request;
      return { handling: 'now', messages: [{ type: 'simulated request', said }], respond: respondToRequest };
    }),
  ];
}

function respondToReport([result]: readonly MessageResult[]): NetworkResponse {
  if (result?.status === 'booked') return { status: 200, body: { transactionId: result.transactionId } };
  if (result?.status === 'applied') return { status: 200, body: { authorizationId: result.authorizationId } };
  return { status: 202, body: result ?? null };
}

function respondToRequest([result]: readonly MessageResult[]): NetworkResponse {
  if (result?.status === 'undecided') throw result.error;
  if (result?.status !== 'decided') return { status: 202, body: null };
  const { declineReason, authorizationId } = result;
  return { status: 200, body: { approved: declineReason === null, declineReason, authorizationId } };
}

function unreadable(error: z.ZodError | undefined): ApiError {
  const issues = error?.issues ?? [];
  return ApiError.ofFields(
    issues.map((issue) => {
      const path = issue.path.join('.') || 'body';
      return { path, message: `${path}: ${issue.message}` };
    }),
  );
}
