import assert from 'node:assert/strict';
import { NamespaceNotFoundError } from '@temporalio/common';
import { isOutage } from '../../../api/http/errors.ts';

describe('isOutage', () => {
  it('is true of a Temporal server that does not know its namespaces yet', () => {
    const error = new Error('it could not be started', { cause: new NamespaceNotFoundError('default') });
    assert.equal(isOutage(error), true);
  });

  it('is true of whatever a dying Temporal server says, and false of its answer to a wrong request', () => {
    const [internal, invalid] = [13, 3].map((code) =>
      Object.assign(new Error('of gRPC'), { code, details: '', metadata: {} }),
    );
    assert.equal(isOutage(new Error('Failed to start Workflow', { cause: internal })), true);
    assert.equal(isOutage(new Error('Failed to start Workflow', { cause: invalid })), false);
  });

  it('is true of a database whose host, or network, is out of reach', () => {
    for (const code of ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ECONNABORTED'])
      assert.equal(isOutage(Object.assign(new Error('of a socket'), { code })), true, code);
  });

  it('is false of an error that would happen again', () => {
    assert.equal(isOutage(new Error('a bug')), false);
    assert.equal(isOutage(Object.assign(new Error('a column is missing'), { code: '42703' })), false);
  });
});
