import assert from 'node:assert/strict';
import { readyBlock } from '../../../../dev/stack/ready-block.ts';

const STACK = {
  databaseUrl: 'postgres://api',
  workerDatabaseUrl: 'postgres://worker',
  ownerDatabaseUrl: 'postgres://owner',
  operatorDatabaseUrl: 'postgres://operator',
  temporalAddress: '127.0.0.1:7233',
  temporalNamespace: 'default',
  apiUrl: 'http://127.0.0.1:3000/v1',
  temporalUiUrl: 'http://127.0.0.1:8233',
  workerUrl: 'http://127.0.0.1:4000',
  demo: { partnerId: 'prt_1', testKey: 'sk_test_1', liveKey: 'sk_live_1' },
  demoIsNew: false,
};

describe('what npm start prints when it is ready', () => {
  it('is an aligned block with what to do next', () => {
    assert.equal(
      readyBlock({ ...STACK, tronUrl: 'http://127.0.0.1:8090' }, '.data'),
      `\
ready  API           http://127.0.0.1:3000/v1
       reference     http://127.0.0.1:3000/docs
       Temporal UI   http://127.0.0.1:8233
       worker        http://127.0.0.1:4000
       TRON node     http://127.0.0.1:8090
       Next, in another terminal, in this folder:
         eval "$(npm run -s env)"   # sets API, KEY (the test key), LIVE (the live key) and PARTNER
         curl -s $API/ping -H "Authorization: Bearer $KEY"`,
    );
  });

  it('has the keys of a new partner, and the data folder if it is not the usual one', () => {
    const lines = readyBlock({ ...STACK, temporalUiUrl: null, demoIsNew: true }, "/tmp/it's mine").split(
      '\n',
    );
    for (const line of [
      '       demo partner  prt_1',
      '       test key      sk_test_1',
      '       live key      sk_live_1',
      "         export DATA_DIR='/tmp/it'\\''s mine'",
    ])
      assert.ok(lines.includes(line), lines.join('\n'));
    assert.ok(!lines.some((line) => line.includes('Temporal UI')));
  });
});
