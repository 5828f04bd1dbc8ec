import assert from 'node:assert/strict';
import { eventually } from '../eventually.ts';
import { withClient } from './clients.ts';
import type { Receiver } from './receivers.ts';

/** Posts once to a receiver. @param after looks at the receiver before the client is closed */
export async function postTo(
  starting: Promise<Receiver>,
  {
    path = '/',
    after = () => {},
  }: { path?: string; after?: (receiver: Receiver) => void | Promise<void> } = {},
) {
  const receiver = await starting;
  try {
    return await withClient({}, async (post) => {
      const result = await post(`http://127.0.0.1:${receiver.port}${path}`);
      await after(receiver);
      return result;
    });
  } finally {
    await receiver.close();
  }
}

/** The client has ended every connection to it. */
export const isLetGo = (receiver: Receiver) => eventually(() => assert.equal(receiver.open.size, 0));
