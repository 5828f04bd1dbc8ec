import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { readBytes } from '../../../api/http/body.ts';
import { ApiError } from '../../../domain/api-error.ts';

describe('a body', () => {
  it('of a client that was gone before it was read is refused, and is no failure of ours', async () => {
    const request = new IncomingMessage(new Socket());
    request.destroy();
    await assert.rejects(
      readBytes(request),
      (error) => error instanceof ApiError && error.code === 'validation_failed',
    );
  });
});
