import Router from '@koa/router';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { issueCardWorkflowId, networkResult, topUpCardWorkflowId } from '../../workflows/messages.ts';
import { readSignedBody, type VerifyCallback } from '../http/read-signed-body.ts';
import type { RequestState } from '../http/request-state.ts';

/** What a callback of a type is about. */
const SUBJECTS = {
  'card.issuance': { prefix: 'card', workflowId: issueCardWorkflowId },
  'card.topup': { prefix: 'topup', workflowId: topUpCardWorkflowId },
} as const;

const Callback = z
  .object({ token: z.string(), type: z.enum(['card.issuance', 'card.topup']) })
  .refine(({ token, type }) => isId(SUBJECTS[type].prefix, token), { path: ['token'] });

export interface CallbackDependencies {
  client: Client;
  verifyCallback: VerifyCallback;
}

/**
 * `POST /network/callbacks`, outside /v1: the card network says that an issuance or a top-up has news. It is only a hint: the
 * workflow asks the network itself, so a callback that is lost, doubled, late or forged changes no outcome.
 */
export function networkCallbacks({ client, verifyCallback }: CallbackDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  router.post('/network/callbacks', async (ctx) => {
    const { token, type } = await readSignedBody(ctx, verifyCallback, Callback);
    const workflowId = SUBJECTS[type].workflowId(token);
    ctx.state.logFields.workflowId = workflowId;
    try {
      await client.workflow.getHandle(workflowId).signal(networkResult);
    } catch (error) {
      // It is over: the hint comes too late to matter.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
    ctx.status = 204;
  });
  return router;
}
