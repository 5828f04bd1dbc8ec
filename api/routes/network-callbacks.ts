import Router from '@koa/router';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import { issueCardWorkflowId, networkResult } from '../../workflows/messages.ts';
import { parseJson } from '../parse-json.ts';
import { readBytes } from '../read-json-body.ts';
import type { RequestState } from '../request-state.ts';
import { validate } from '../validate.ts';

const Callback = z.object({
  token: z.string().refine((token) => isId('card', token)),
  type: z.literal('card.issuance'),
});

export interface CallbackDependencies {
  client: Client;
  /** Whether the network wrote this body. */
  verifyCallback(rawBody: Buffer, signature: string | undefined): boolean;
}

/**
 * `POST /network/callbacks`, outside /v1: the card network says that an issuance has news. It is only a hint: the
 * workflow asks the network itself, so a callback that is lost, doubled, late or forged changes no outcome.
 */
export function networkCallbacks({ client, verifyCallback }: CallbackDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  router.post('/network/callbacks', async (ctx) => {
    const body = await readBytes(ctx.req);
    const signature = ctx.get('X-Network-Signature');
    if (!verifyCallback(body, signature)) {
      throw new ApiError('invalid_api_key', { message: 'X-Network-Signature does not fit the body.' });
    }
    const callback = validate(Callback, parseJson(body), 'body');
    if (callback.issues.length > 0) throw ApiError.ofFields(callback.issues);
    const { token } = callback.value;
    const workflowId = issueCardWorkflowId(token);
    ctx.state.logFields.workflowId = workflowId;
    try {
      await client.workflow.getHandle(workflowId).signal(networkResult);
    } catch (error) {
      // The issuance is over: the hint comes too late to matter.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
    ctx.status = 204;
  });
  return router;
}
