import assert from 'node:assert/strict';
import { isReadable, type UnreadableObject } from '../../../issuers/card-network.ts';

/** What a network's list has, all of which can be read. */
export async function* readable<Listed extends object>(
  list: AsyncIterable<Listed | UnreadableObject>,
): AsyncGenerator<Listed> {
  for await (const one of list) {
    assert.ok(isReadable(one), JSON.stringify(one));
    yield one;
  }
}
