import { defaultPayloadConverter, type Headers, type Payload } from '@temporalio/common';
import { type WorkflowInterceptorsFactory, workflowInfo } from '@temporalio/workflow';
import type { Mode } from '../domain/mode.ts';
import { modeAttribute, partnerIdAttribute } from './search-attributes.ts';

const HEADER = 'account';

/** Whose work an activity does, as the workflow's search attributes say. */
export interface AccountHeader {
  partnerId: string;
  mode: Mode;
}

/**
 * Lets every activity know whose work it does before it asks the database for a connection: local activities are told
 * nothing of their workflow's priority or search attributes. Headers are no part of what a replay compares.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  let header: Payload | undefined;
  const withAccount = (headers: Headers): Headers => {
    header ??= defaultPayloadConverter.toPayload(accountOfWorkflow());
    return { ...headers, [HEADER]: header };
  };
  return {
    outbound: [
      {
        scheduleActivity: (input, next) => next({ ...input, headers: withAccount(input.headers) }),
        scheduleLocalActivity: (input, next) => next({ ...input, headers: withAccount(input.headers) }),
      },
    ],
  };
};

function accountOfWorkflow(): Partial<AccountHeader> {
  const { typedSearchAttributes: attributes } = workflowInfo();
  return {
    partnerId: attributes.get(partnerIdAttribute),
    mode: attributes.get(modeAttribute) as Mode | undefined,
  };
}

/** @returns undefined where the activity was scheduled without it. */
export function accountOf(headers: Headers): AccountHeader | undefined {
  const payload = headers[HEADER];
  if (payload === undefined) return undefined;
  const { partnerId, mode } = defaultPayloadConverter.fromPayload<Partial<AccountHeader>>(payload) ?? {};
  return typeof partnerId === 'string' && (mode === 'test' || mode === 'live')
    ? { partnerId, mode }
    : undefined;
}
