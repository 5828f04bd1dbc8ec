import assert from 'node:assert/strict';
import { NamespaceNotFoundError } from '@temporalio/common';
import { isOutage } from '../../../api/http/errors.ts';

describe('isOutage', () => {
  it('counts a Temporal server that does not know its namespaces yet', () => {
    const error = new Error('it could not be started', { cause: new NamespaceNotFoundError('default') });
    assert.equal(isOutage(error), true);
  });

  it('counts whatever a Temporal server says that dies, but not what it says of a wrong request', () => {
    const [internal, invalid] = [13, 3].map((code) =>
      Object.assign(new Error('of gRPC'), { code, details: '', metadata: {} }),
    );
    assert.equal(isOutage(new Error('Failed to start Workflow', { cause: internal })), true);
    assert.equal(isOutage(new Error('Failed to start Workflow', { cause: invalid })), false);
  });

  it('does not count what will fail again', () => {
    assert.equal(isOutage(new Error('a bug')), false);
    assert.equal(isOutage(Object.assign(new Error('a column is missing'), { code: '42703' })), false);
  });
});
