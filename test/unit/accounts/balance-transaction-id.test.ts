import assert from 'node:assert/strict';
import fc from 'fast-check';
import { balanceTransactionId, parseVersion } from '../../../accounts/resource.ts';
import { isId } from '../../../domain/ids.ts';

const version = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

describe('balanceTransactionId', () => {
  it('contains the number of its entry', () => {
    fc.assert(
      fc.property(version, fc.uuid(), (number, uuid) => {
        const id = balanceTransactionId(number, uuid);
        assert.ok(isId('btx', id), id);
        assert.equal(parseVersion(id), BigInt(number));
      }),
    );
  });

  it('sorts as the entries do, whatever their transfers', () => {
    fc.assert(
      fc.property(version, version, fc.uuid(), fc.uuid(), (one, other, uuid, another) => {
        const [a, b] = [balanceTransactionId(one, uuid), balanceTransactionId(other, another)];
        if (one !== other) assert.equal(a < b, one < other);
      }),
    );
  });

  it("contains 75 bits of the transfer's id, so that no other transfer gives the same id", () => {
    const id = (uuid: string) => balanceTransactionId(7, uuid);
    const uuid = '5bf2b0f1-3c5e-5a7e-9d0c-0123456789ab';
    for (const other of [
      '5bf2b0f1-3c5e-5a7e-9d0c-0123456789aa',
      '5bf2b0f1-3c5e-5a7e-8d0c-0123456789ab',
      '5bf2b0f1-3c5e-5a7f-9d0c-0123456789ab',
    ]) {
      assert.notEqual(id(uuid), id(other));
    }
  });
});
