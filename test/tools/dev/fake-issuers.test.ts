import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { startFakeIncrease } from '../../../dev/increase/fake-increase.ts';
import { startFakeLithic } from '../../../dev/lithic/fake-lithic.ts';

for (const { issuer, start } of [
  { issuer: 'Increase', start: () => startFakeIncrease() },
  { issuer: 'Lithic', start: () => startFakeLithic({ apiKey: 'a-key' }) },
]) {
  describe(`the fake ${issuer}`, () => {
    let fake: { url: string; stop(): Promise<void> };
    beforeEach(async () => {
      fake = await start();
    });
    afterEach(() => fake.stop());

    it('answers 500 to a path that is none, and goes on', async () => {
      for (let asked = 0; asked < 2; asked++) assert.equal((await fetch(`${fake.url}//`)).status, 500);
    });

    it('goes on after a caller that hangs up while its body is read', async () => {
      const socket = connect(Number(new URL(fake.url).port), '127.0.0.1');
      const head = 'POST /cards HTTP/1.1\r\nHost: fake\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n';
      socket.write(head);
      // The fake has begun to read.
      await once(socket, 'data');
      socket.destroy();
      assert.equal((await fetch(`${fake.url}/cards`)).status, 401);
    });
  });
}
