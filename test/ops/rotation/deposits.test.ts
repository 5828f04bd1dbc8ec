import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import tls, { type SecureContextOptions } from 'node:tls';
import { HDKey } from '@scure/bip32';
import { freePort } from '../../../dev/free-port.ts';
import type { HandChain } from '../../../dev/tron/chain.ts';
import { tokenTransfer } from '../../../dev/tron/drafts.ts';
import { type FakeNode, startFakeNode } from '../../../dev/tron/fake-node.ts';
import type { Config } from '../../../platform/config/service.ts';
import type { TronConfig } from '../../../platform/config/tron.ts';
import { deriveDepositAddress } from '../../../platform/crypto/tron-address.ts';
import { createAuthority } from '../../support/adapters/webhooks/tls.ts';
import { newChain, openAddress, tronConfigOf, untilDeposit } from '../../support/deposits/deposit-stack.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';
import { balanceOf } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

/** A key is sent to hosts of this domain alone. */
const TRON_GRID = 'api.trongrid.io';
const CENTS = 2_500;

/** Like TronGrid, answers 401 without a known API key, and otherwise as the node does. */
async function startTronGrid(node: FakeNode, certified: SecureContextOptions) {
  const accepted = new Set<string>();
  let refusals = 0;
  const server = createServer(certified, (asked, response) => {
    if (!accepted.has(String(asked.headers['tron-pro-api-key']))) {
      refusals++;
      response.writeHead(401).end('{"Error":"ApiKey not exists"}');
      return;
    }
    const { method = '', url = '', headers } = asked;
    const forwarded = request(new URL(url, node.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    // Whoever asked has gone.
    forwarded.on('error', () => response.destroy());
    asked.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://${TRON_GRID}:${(server.address() as AddressInfo).port}`,
    accepted,
    refusals: () => refusals,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Leads TronGrid's name here, with a certificate that is believed. @returns what undoes it */
function leadTronGridHere(ca: string): () => void {
  const [lookup, authorities] = [dns.lookup, tls.getCACertificates('default')];
  tls.setDefaultCACertificates([...authorities, ca]);
  dns.lookup = ((host: string, ...rest: unknown[]) =>
    Reflect.apply(lookup, dns, [host === TRON_GRID ? '127.0.0.1' : host, ...rest])) as typeof lookup;
  return () => {
    dns.lookup = lookup;
    tls.setDefaultCACertificates(authorities);
  };
}

describe('a rotation while deposits wait for payments', () => {
  const authority = createAuthority('TronGrid');
  const newXpub = HDKey.fromMasterSeed(Buffer.alloc(32, 7)).derive("m/44'/195'/0'").publicExtendedKey ?? '';
  let restore: () => void;
  let chain: HandChain;
  let node: FakeNode;
  let grid: Awaited<ReturnType<typeof startTronGrid>>;
  let stack: TestStack;
  let partner: TestPartner;
  let creditedCents = 0;

  const tronWith = (apiKey: string, more: Partial<TronConfig> = {}): TronConfig => ({
    ...tronConfigOf([node]),
    nodes: [{ full: grid.url, solidity: grid.url }],
    apiKey,
    ...more,
  });

  before(async () => {
    restore = leadTronGridHere(authority.ca);
    chain = newChain();
    node = await startFakeNode(chain);
    grid = await startTronGrid(node, authority.issue({ hosts: [TRON_GRID] }));
    grid.accepted.add('old');
    stack = await startTestStack({ tron: tronWith('old') });
    partner = await stack.createPartner();
  });
  after(async () => {
    await stack?.stop();
    await grid.stop();
    await node.stop();
    restore();
  });

  /** Starts API and worker with what is new, lets `meanwhile` see both, and stops those with what is old. */
  async function replaceProcesses(
    tron: Config['tron'],
    meanwhile: (there: TestPartner) => Promise<void> = async () => {},
  ): Promise<void> {
    const next = await startTestStack({ ...stack.config, tron, port: await freePort() }, { product: false });
    const there = next.partnerHere(partner);
    await meanwhile(there);
    await stack.stop();
    [stack, partner] = [next, there];
  }

  async function pay(deposit: { id: string; address: string }): Promise<void> {
    chain.mine([tokenTransfer({ to: deposit.address, valueMicroUsdt: BigInt(CENTS) * 10_000n })]);
    chain.solidify();
    await untilDeposit(partner, deposit.id, 'confirmed');
    creditedCents += CENTS;
    assert.deepEqual(await balanceOf(partner, 'live'), [creditedCents, 0, creditedCents]);
  }

  it('replaces TRON_API_KEY and misses no payment', async () => {
    await pay(await openAddress(partner, CENTS));
    const deposit = await openAddress(partner, CENTS);
    grid.accepted.add('new');
    await replaceProcesses(tronWith('new'));
    grid.accepted.delete('old');
    await pay(deposit);
    assert.equal(grid.refusals(), 0);
  });

  it('asks the other nodes if an API key is revoked too early', async () => {
    const other = await startFakeNode(chain, { name: 'other' });
    try {
      const tron = tronWith('new');
      const [{ full, solidity } = assert.fail()] = tronConfigOf([other]).nodes;
      await replaceProcesses({ ...tron, nodes: [...tron.nodes, { full, solidity }] });
      grid.accepted.delete('new');
      await pay(await openAddress(partner, CENTS));
      await until('the node that refuses was asked', async () => grid.refusals() > 0);
      grid.accepted.add('new');
      await replaceProcesses(tronWith('new'));
    } finally {
      await other.stop();
    }
  });

  it('replaces TRON_XPUB, and payments to earlier addresses are still found and credited', async () => {
    const before = await openAddress(partner, CENTS);
    let during = before;
    await replaceProcesses(tronWith('new', { xpub: newXpub }), async (there) => {
      during = await openAddress(partner, CENTS);
      assert.ok(isBelow(TEST_TRON.xpub, during.address));
      assert.ok(isBelow(newXpub, (await openAddress(there, CENTS)).address));
    });
    const after = await openAddress(partner, CENTS);
    assert.ok(isBelow(newXpub, after.address));
    assert.ok(!isBelow(newXpub, before.address));
    for (const deposit of [after, during, before]) await pay(deposit);
  });
});

/** Whether one of the first addresses of this account. */
const isBelow = (xpub: string, address: string): boolean =>
  Array.from({ length: 20 }, (_, index) => deriveDepositAddress(xpub, index).address).includes(address);
