import assert from 'node:assert/strict';
import { readSettings } from '../../../dev/stack/settings.ts';

describe('the settings of the local stack', () => {
  it('have the defaults of operations.md, and take an empty value for none', () => {
    const { DATA_DIR, HOST, PORT, TEMPORAL_NAMESPACE, ...rest } = readSettings({
      PORT: '',
      TEMPORAL_ADDRESS: '',
    });
    assert.deepEqual([DATA_DIR, HOST, PORT, TEMPORAL_NAMESPACE], ['.data', '127.0.0.1', 3000, 'default']);
    assert.deepEqual(rest, {});
  });

  it('name every problem at once', () => {
    const bad = {
      HOST: '0.0.0.0',
      PORT: '70000',
      POSTGRES_PORT: 'x',
      TEMPORAL_PORT: '0',
      TEMPORAL_UI_PORT: '1.5',
    };
    assert.throws(
      () => readSettings(bad),
      (error: Error) => Object.keys(bad).every((name) => error.message.includes(`${name}: `)),
    );
  });
});
