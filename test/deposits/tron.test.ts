import assert from 'node:assert/strict';
import { beginScan, readCursor, recordChainState } from '../../deposits/chain-scan.ts';
import type { ChainName, NodeState } from '../../domain/deposit.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { seedDeposits } from '../support/deposits/seed-deposits.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { type Operate, operateIn } from '../support/operator/operate.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const ago = (ms: number): Date => new Date(Date.now() - ms);
const hash = (number: number): string => String(number).padStart(64, '0');

const NODES: NodeState[] = [
  { name: 'a.example:443', state: 'in_use', problem: null, since: '2026-11-22T08:00:00.000Z' },
  { name: 'b.example:8091', state: 'failing', problem: 'http 403', since: '2026-11-22T09:00:00.000Z' },
];

describe('operator tron', () => {
  let commands: TestCommands;
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  before(async () => {
    commands = await openCommands();
    env = { DATABASE_URL: commands.operatorUrl };
    operate = operateIn(env);
  });
  beforeEach(() => commands.owner.query('TRUNCATE chain_scan, deposit CASCADE'));
  after(() => commands.close());

  const em = () => commands.context.orm.em.fork();
  const attention = async () => (await operate('attention', 'list')).json;

  /** A chain that has been read up to a block of this age, out of 1,000 more. */
  async function scanned(number: number, ageMs: number, network: ChainName = 'private'): Promise<void> {
    await beginScan(commands.context.orm, network, { number, hash: hash(number), time: ago(ageMs) });
    await recordChainState(commands.context.orm, network, {
      solidBlockNumber: number + 1_000,
      node: 'a.example:443',
      nodes: NODES,
    });
  }

  describe('status', () => {
    it('prints how far the chain has been scanned, how far behind that is, and the state of its nodes', async () => {
      await scanned(5_000, 90 * SECOND_MS);
      const { code, json } = await operate('tron', 'status');
      assert.equal(code, 0);
      const { lag_seconds, block_time, checked_at, ...rest } = json;
      assert.ok(lag_seconds >= 30, String(lag_seconds));
      assert.ok(Date.parse(block_time) < Date.parse(checked_at));
      assert.deepEqual(rest, {
        ...{ object: 'chain_scan', network: 'private', block: 5_000, solid_block: 6_000, lag_blocks: 1_000 },
        ...{ node: 'a.example:443', nodes: NODES },
        ...{ workflow_id: 'scan-chain/private', workflow_status: null },
      });
    });

    it('uses the chain of --network, else of TRON_NETWORK, else the only one', async () => {
      const network = async (operator: Operate, ...flags: string[]) =>
        (await operator('tron', 'status', ...flags)).json?.network;
      const configured = operateIn({ ...env, TRON_NETWORK: 'nile' });
      assert.match((await operate('tron', 'status')).err, /^No chain has been scanned yet/);
      await scanned(5_000, 0, 'private');
      assert.equal(await network(operate), 'private');
      assert.match((await configured('tron', 'status')).err, /^nile has not been scanned yet/);
      await scanned(70, 0, 'nile');
      const { code, err } = await operate('tron', 'status');
      assert.equal(code, 1);
      assert.match(err, /Several chains have been scanned \(nile, private\): choose one with --network/);
      assert.equal(await network(configured), 'nile');
      assert.equal(await network(configured, '--network', 'private'), 'private');
    });
  });

  describe('rescan', () => {
    const cursor = () => readCursor(em(), 'private');

    it('scans the chain again from a block on, and records it', async () => {
      await scanned(5_000, 0);
      const { code, json } = await operate('tron', 'rescan', '--from', '4001');
      assert.equal(code, 0);
      const { block, block_time, lag_blocks, lag_seconds } = json;
      assert.deepEqual([block, block_time, lag_blocks, lag_seconds], [4_000, null, 2_000, 6_000]);
      assert.deepEqual(await cursor(), { number: 4_000, hash: null, time: null });
      await assertAudited(operate, 'tron.rescan', 'private', { fromBlock: 4_001, cameTo: 5_000 });
      assert.equal((await operate('tron', 'rescan', '--from', '1')).json.block, 0);
    });

    it('is refused ahead of the scan, and before there is a scan', async () => {
      assert.match((await operate('tron', 'rescan', '--from', '1')).err, /^No chain has been scanned yet/);
      await scanned(5_000, 0);
      const before = await cursor();
      const { code, out, err } = await operate('tron', 'rescan', '--from', '5001');
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /is at block 5000/);
      assert.deepEqual(await cursor(), before);
    });
  });

  describe('in attention list', () => {
    it('has a chain whose scan is behind, with the problems of its nodes', async () => {
      await scanned(5_000, 0);
      assert.deepEqual(await attention(), []);
      await commands.owner.query("UPDATE chain_scan SET block_time = now() - interval '10 minutes'");
      const [item, ...others] = await attention();
      assert.deepEqual(others, []);
      assert.deepEqual([item.kind, item.id], ['chain_scan', 'private']);
      assert.match(item.reason, /^the scan is \d+ s and 1000 blocks behind: b.example:8091: http 403$/);
      assert.equal(item.command, 'npm run operator -- tron status --network private');
    });

    it('has a chain whose scan has not reported, however far it was', async () => {
      await scanned(5_000, 0);
      await commands.owner.query("UPDATE chain_scan SET checked_at = now() - interval '3 minutes'");
      const [item] = await attention();
      assert.equal(item.kind, 'chain_scan');
      assert.match(
        item.reason,
        /^the scan has not reported .*: Temporal does not say whether a worker is running$/,
      );
    });

    it('has a chain that is not scanned although addresses were given out', async () => {
      const partnerId = await commands.createFundedPartner(1);
      await seedDeposits(commands.owner, { partnerId });
      await commands.owner.query('UPDATE deposit SET told_version = version');
      assert.deepEqual(await attention(), []);
      await commands.owner.query("UPDATE deposit SET created_at = now() - interval '3 minutes'");
      const [item] = await attention();
      assert.deepEqual([item.kind, item.id], ['chain_scan', 'private']);
      assert.match(item.reason, /^addresses were given out, but the chain is not being scanned/);
      await scanned(1, MINUTE_MS);
      assert.deepEqual(await attention(), []);
    });
  });
});
