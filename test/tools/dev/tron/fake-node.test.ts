import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { TronWeb, utils } from 'tronweb';
import { addressHash } from '../../../../dev/tron/address.ts';
import { HandChain } from '../../../../dev/tron/chain.ts';
import {
  approval,
  FAKE_USDT_CONTRACT,
  failedTransfer,
  tokenTransfer,
  trxTransfer,
} from '../../../../dev/tron/drafts.ts';
import { type FakeNode, startFakeNode } from '../../../../dev/tron/fake-node.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
const BOB = 'TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C';

describe('the API of a fake TRON node', () => {
  let chain: HandChain;
  let node: FakeNode;
  // biome-ignore lint/suspicious/noExplicitAny: what a client would read.
  const ask = async (path: string, body?: unknown): Promise<any> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${node.url}${path}`, init);
    assert.equal(response.status, 200);
    return response.json();
  };

  beforeEach(async () => {
    chain = new HandChain({ solidAfterBlocks: 2 });
    node = await startFakeNode(chain);
  });
  afterEach(() => node.stop());

  it('shows a block as java-tron does, by POST and GET, by number and by id', async () => {
    const parent = chain.mine();
    const block = chain.mine([
      tokenTransfer({ to: ALICE, valueMicroUsdt: 25_000_000n }),
      trxTransfer(BOB, 7),
    ]);
    const shown = await ask('/wallet/getblockbynum', { num: 2 });
    assert.deepEqual(shown.block_header.raw_data, {
      number: 2,
      txTrieRoot: shown.block_header.raw_data.txTrieRoot,
      witness_address: shown.block_header.raw_data.witness_address,
      parentHash: parent.hash,
      version: 34,
      timestamp: block.timeMs,
    });
    assert.equal(shown.blockID, block.hash);
    assert.match(shown.blockID, /^0000000000000002[0-9a-f]{48}$/);
    const [transfer, trx] = shown.transactions;
    assert.deepEqual(transfer.ret, [{ contractRet: 'SUCCESS' }]);
    assert.equal(transfer.raw_data.contract[0].type, 'TriggerSmartContract');
    assert.equal(
      transfer.raw_data.contract[0].parameter.value.contract_address,
      `41${addressHash(FAKE_USDT_CONTRACT)}`,
    );
    assert.equal(trx.raw_data.contract[0].parameter.value.to_address, `41${addressHash(BOB)}`);
    for (const { txID, raw_data_hex } of shown.transactions) {
      assert.equal(createHash('sha256').update(Buffer.from(raw_data_hex, 'hex')).digest('hex'), txID);
    }

    assert.deepEqual(await ask('/wallet/getblockbynum?num=2'), shown);
    assert.deepEqual(await ask('/wallet/getnowblock'), shown);
    assert.deepEqual(await ask('/wallet/getnowblock', {}), shown);
    assert.deepEqual(await ask('/wallet/getblock', { id_or_num: block.hash, detail: true }), shown);
    assert.deepEqual(await ask('/wallet/getblock?id_or_num=2&detail=true'), shown);
    const { transactions: _, ...header } = shown;
    assert.deepEqual(await ask('/wallet/getblock', { id_or_num: '2' }), header);
    assert.deepEqual(await ask('/wallet/getblock'), header);
    assert.deepEqual(await ask('/wallet/getblock', { id_or_num: `${block.hash.slice(0, -1)}x` }), {
      Error: `class org.tron.core.services.http.JsonFormat$ParseException : Couldn't parse integer: ${block.hash.slice(0, -1)}x`,
    });
  });

  it('shows the results of transactions', async () => {
    const payments = [
      { to: ALICE, valueMicroUsdt: 25_000_001n, from: BOB },
      { to: BOB, valueMicroUsdt: 0n },
    ];
    const block = chain.mine([
      tokenTransfer(payments),
      failedTransfer({ to: ALICE, valueMicroUsdt: 1n }, 'OUT_OF_ENERGY'),
      approval({ to: ALICE, valueMicroUsdt: 1n }),
      trxTransfer(ALICE, 1),
    ]);
    const infos = await ask('/wallet/gettransactioninfobyblocknum', { num: 1 });
    assert.deepEqual(
      infos.map(({ id }: { id: string }) => id),
      block.transactions.map(({ id }) => id),
    );
    const [twice, failed, allowed, trx] = infos;
    assert.deepEqual([twice.blockNumber, twice.blockTimeStamp], [1, block.timeMs]);
    assert.equal(twice.receipt.result, 'SUCCESS');
    assert.deepEqual(twice.log[0], {
      address: addressHash(FAKE_USDT_CONTRACT),
      topics: [
        TronWeb.sha3('Transfer(address,address,uint256)', false),
        `${'0'.repeat(24)}${addressHash(BOB)}`,
        `${'0'.repeat(24)}${addressHash(ALICE)}`,
      ],
      data: (25_000_001).toString(16).padStart(64, '0'),
    });
    assert.equal(twice.log[1].data, '0'.repeat(64));
    assert.deepEqual(
      [failed.result, failed.receipt.result, failed.log],
      ['FAILED', 'OUT_OF_ENERGY', undefined],
    );
    assert.match(Buffer.from(failed.resMessage, 'hex').toString(), /^Not enough energy/);
    assert.equal(allowed.log[0].topics[0], TronWeb.sha3('Approval(address,address,uint256)', false));
    assert.deepEqual(trx, {
      id: block.transactions[3]?.id,
      blockNumber: 1,
      blockTimeStamp: block.timeMs,
      contractResult: [''],
      receipt: { net_usage: 267 },
    });
    assert.deepEqual(await ask('/wallet/gettransactioninfobyid', { value: twice.id }), twice);
    assert.deepEqual(await ask(`/wallet/gettransactionbyid?value=${twice.id}`), {
      ...(await ask('/wallet/getnowblock')).transactions[0],
    });
    assert.deepEqual(await ask('/walletsolidity/gettransactioninfobyid', { value: twice.id }), {});
  });

  it('answers {} or [] for what it does not have, as a real node does', async () => {
    chain.mine([trxTransfer(ALICE, 1)]);
    const genesis = await ask('/wallet/getblockbynum', {});
    assert.equal('number' in genesis.block_header.raw_data, false);
    assert.equal('transactions' in genesis, false);
    for (const num of [-1, 2, 5_000]) assert.deepEqual(await ask('/wallet/getblockbynum', { num }), {});
    for (const num of [0, -1])
      assert.deepEqual(await ask('/wallet/gettransactioninfobyblocknum', { num }), {});
    assert.deepEqual(await ask('/wallet/gettransactioninfobyblocknum', { num: 2 }), []);
    assert.deepEqual(await ask('/walletsolidity/gettransactioninfobyblocknum', { num: 1 }), []);
    assert.match((await ask('/wallet/getblockbynum', { num: 'x' })).Error, /ParseException/);
    assert.equal((await fetch(`${node.url}/wallet/toString`)).status, 404);
    assert.equal((await fetch(`${node.url}/walletsolidity`)).status, 404);
  });

  it('serves solid blocks under a path of their own, or on a port of their own if the node is bare', async () => {
    chain.mineMany(5);
    const numberOf = async (path: string) => (await ask(path)).block_header.raw_data.number;
    assert.equal(await numberOf('/wallet/getnowblock'), 5);
    assert.equal(await numberOf('/walletsolidity/getnowblock'), 3);
    assert.deepEqual(await ask('/walletsolidity/getblockbynum', { num: 4 }), {});

    const bare = await startFakeNode(chain, { isBare: true });
    try {
      const [full, solidity] = bare.url.split('|');
      const status = async (url: string) => (await fetch(url)).status;
      assert.equal(await status(`${full}/wallet/getnowblock`), 200);
      assert.equal(await status(`${full}/walletsolidity/getnowblock`), 404);
      assert.equal(await status(`${solidity}/walletsolidity/getnowblock`), 200);
      assert.equal(await status(`${solidity}/wallet/getnowblock`), 404);
    } finally {
      await bare.stop();
    }
  });

  it("can be read by TRON's own client", async () => {
    chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]);
    const tronWeb = new TronWeb({ fullHost: node.url });
    const block = await tronWeb.trx.getBlockByNumber(1);
    assert.equal(block.blockID, chain.head.hash);
    const [first, ...more] = block.transactions ?? [];
    assert.equal(more.length, 0);
    assert.ok(first !== undefined && utils.transaction.txCheck(first));
    assert.equal(
      (await tronWeb.trx.getUnconfirmedTransactionInfo(chain.head.transactions[0]?.id ?? '')).blockNumber,
      1,
    );
    assert.deepEqual(await tronWeb.isConnected(), { fullNode: true, solidityNode: true, eventServer: false });
  });
});
