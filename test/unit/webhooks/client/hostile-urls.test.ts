import assert from 'node:assert/strict';
import { HOST, leadTo, PUBLIC, withClient } from '../../../support/adapters/webhooks/clients.ts';
import { startCanary } from '../../../support/adapters/webhooks/receivers.ts';

/** Every URL a partner may not send us to, with the reason we give; PORT becomes the canary's. */
const HOSTILE: Record<string, string[]> = {
  address_not_allowed: [
    ...['https://127.0.0.1:PORT/', 'https://127.255.255.254:PORT/', 'https://127.0.0.1.:PORT/'],
    ...['https://127.1:PORT/', 'https://127.0.1:PORT/', 'https://0:PORT/', 'https://0.0.0.0:PORT/'],
    ...['https://2130706433:PORT/', 'https://017700000001:PORT/', 'https://0x7f000001:PORT/'],
    ...['https://0x7f.1:PORT/', 'https://0177.0.0.1:PORT/', 'https://0x7f.0x0.0x0.0x1:PORT/'],
    ...['https://0X7F.1:PORT/', 'https://0177.0.0x1:PORT/', 'https://127.000.000.001:PORT/'],
    ...['https://%31%32%37.0.0.1:PORT/', 'https://127%2e0%2e0%2e1:PORT/', 'https://1%327.1:PORT/'],
    ...['https://１２７.０.０.１:PORT/', 'https://127。0。0。1:PORT/', 'https://127．0．0．1:PORT/'],
    ...['https://127｡0｡0｡1:PORT/', 'https://①②⑦.⓪.⓪.①:PORT/', 'https://𝟏𝟐𝟕.𝟎.𝟎.𝟏:PORT/'],
    ...['https://[::1]:PORT/', 'https://[::]:PORT/', 'https://[0:0:0:0:0:0:0:1]:PORT/'],
    ...[
      'https://[::ffff:127.0.0.1]:PORT/',
      'https://[::ffff:7f00:1]:PORT/',
      'https://[::FFFF:7F00:0001]:PORT/',
    ],
    ...['https://[::127.0.0.1]:PORT/', 'https://[::ffff:0:127.0.0.1]:PORT/', 'https://[0:0::1]:PORT/'],
    ...['https://[64:ff9b::7f00:1]:PORT/', 'https://[64:ff9b:1::127.0.0.1]:PORT/'],
    ...['https://[2002:7f00:1::]:PORT/', 'https://[2001:0:7f00:1::]:PORT/', 'https://[fe80::1]:PORT/'],
    ...['https://[fd00:ec2::254]/', 'https://[fc00::1]/', 'https://[fec0::1]/', 'https://[ff02::1]/'],
    ...['https://10.0.0.1/', 'https://172.16.0.1/', 'https://192.168.1.1/', 'https://100.100.100.200/'],
    ...['https://169.254.169.254/latest/meta-data/', 'https://2852039166/', 'https://0xa9fea9fe/'],
    ...['https://[::ffff:169.254.169.254]/', 'https://168.63.129.16/', 'https://0xa83f8110/'],
    ...['https://192.0.2.1/', 'https://198.18.0.1/', 'https://224.0.0.1/', 'https://255.255.255.255/'],
    ...['https://127.0.0.1:6379/', 'https://127.0.0.1:5432/'],
  ],
  url_host_not_allowed: [
    ...['https://localhost:PORT/', 'https://LOCALHOST:PORT/', 'https://localhost.:PORT/'],
    ...['https://foo.localhost:PORT/', 'https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/', 'https://loc\u00adalhost:PORT/'],
    ...['https://%6cocalhost:PORT/', 'https://metadata/', 'https://kubernetes/', `https://${HOST}./`],
    ...[
      `https://${HOST}../`,
      'https://a..example/',
      "https://a'b.example/",
      'https://a,b.example/',
      'https://xn--/',
    ],
  ],
  url_scheme_not_allowed: [
    ...['http://127.0.0.1:PORT/', 'http://localhost:PORT/', 'http://[::1]:PORT/', `http://${HOST}:PORT/`],
    ...['http://127.0.0.1.example.com/', 'http://10.0.0.1/'],
    ...['file:///etc/passwd', 'file://127.0.0.1/etc/passwd', 'ftp://127.0.0.1:PORT/'],
    ...['gopher://127.0.0.1:PORT/_x', 'javascript:alert(1)', 'data:text/plain,x', 'ws://127.0.0.1:PORT/'],
    ...['wss://127.0.0.1:PORT/', 'unix:/var/run/docker.sock', 'http+unix://%2Fvar%2Frun%2Fdocker.sock/'],
    ...['dict://127.0.0.1:PORT/', 'ldap://127.0.0.1:PORT/', 'blob:https://127.0.0.1:PORT/x', 'about:blank'],
  ],
  url_port_not_allowed: [
    ...[22, 25, 53, 80, 110, 111, 139, 445, 587, 993, 1023, 0].map((port) => `https://${HOST}:${port}/`),
    'https://8.8.8.8:22/',
  ],
  url_userinfo_not_allowed: [
    ...[`https://user:secret@${HOST}/`, `https://user@${HOST}/`, `https://@${HOST}/`, `https://:@${HOST}/`],
    ...[`https://${HOST}@127.0.0.1:PORT/`, `https://127.0.0.1:PORT@${HOST}/`, `https://a@b@${HOST}/`],
  ],
  url_fragment_not_allowed: [
    ...[`https://${HOST}/#@127.0.0.1`, `https://${HOST}#`, `https://${HOST}?a#b`, 'https://127.0.0.1:PORT#x'],
  ],
  url_invalid: [
    ...['not a url', `https://${HOST}/ a`, 'https:///x'],
    ...['', ' ', 'https', 'https:', 'https://', '//127.0.0.1:PORT/', '/127.0.0.1', '127.0.0.1:PORT'],
    ...['https:127.0.0.1:PORT', 'https:/127.0.0.1:PORT/', 'https:///127.0.0.1:PORT/', `https:${HOST}`],
    ...['https:\\\\127.0.0.1:PORT\\', `https://${HOST}\\@127.0.0.1:PORT/`, `https://${HOST}\\.127.0.0.1/`],
    ...['https://127.0.0.1\t:PORT/', 'https://127.0.\n0.1:PORT/', 'ht\ntps://127.0.0.1:PORT/'],
    ...[`https://${HOST}/a b`, ` https://${HOST}/`, `https://${HOST}/\u0000`, `https://${HOST}/\u2028`],
    ...[`https://${HOST}/\r\nX-Injected: 1`, `https://${HOST}\r\n/`, `https://${HOST}:PORT:443/`],
    ...['https://[::1/', 'https://::1/', 'https://[fe80::1%25eth0]/', 'https://256.256.256.256/'],
    ...['https://127.0.0.1.1/', 'https://1.2.3.4.5/', 'https://0x100000000/', `https://${HOST}:65536/`],
    ...[`https://${HOST}:-1/`, `https://${HOST}:٤٤٣/`, 'https://a%00b.example/'],
  ],
};

describe('a hostile URL', () => {
  for (const [error, urls] of Object.entries(HOSTILE)) {
    for (const written of urls) {
      it(`is refused with ${error} when it is ${JSON.stringify(written)}`, async () => {
        await using canary = await startCanary();
        const url = written.replaceAll('PORT', String(canary.port));
        const lookedUp: string[] = [];
        // Whatever is looked up is this machine in the one network, and in the other everything leads to it.
        const leadingTo = (address: string) => async (name: string) => {
          lookedUp.push(name);
          return [address];
        };
        const networks = [
          { resolve: leadingTo('127.0.0.1') },
          { resolve: leadingTo(PUBLIC), openSocket: leadTo(canary.port) },
        ];
        for (const network of networks) {
          const result = await withClient({ ...network, allowLoopbackHttp: false }, (post) => post(url));
          const refused = { outcome: 'failed', httpStatus: null, error, durationMs: 0, answerStart: null };
          assert.deepEqual(result, refused);
        }
        assert.deepEqual(lookedUp, []);
        await canary.assertUntouched();
      });
    }
  }

  it('would reach the canary if it were let through', async () => {
    await using canary = await startCanary();
    const openSocket = leadTo(canary.port);
    const options = { openSocket, resolve: async () => [PUBLIC], timeoutMs: 500 };
    const result = await withClient(options, (post) => post(`https://${HOST}/`));
    assert.equal(result.error, 'timeout');
    await assert.rejects(canary.assertUntouched());
  });
});
