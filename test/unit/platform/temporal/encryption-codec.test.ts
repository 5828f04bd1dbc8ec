import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { EncryptionCodec } from '../../../../platform/temporal/encryption-codec.ts';

const OLD = { id: 'old', secret: randomBytes(32) };
const NEW = { id: 'new', secret: randomBytes(32) };
const VALUE = { claimId: 'claim_01', deadlineMs: 86_400_000, note: 'zwölf Boxkämpfer' };

const payload = (): Payload => defaultPayloadConverter.toPayload(VALUE);
const readPayload = (opened: Payload | undefined) => defaultPayloadConverter.fromPayload(opened ?? {});
const textOf = ({ metadata, data }: Payload): string =>
  [...Object.values(metadata ?? {}), data ?? new Uint8Array()]
    .map((bytes) => Buffer.from(bytes).toString('latin1'))
    .join(' ');

describe('the payload codec', () => {
  it('encrypts a payload and its metadata with the first key, and never the same way twice', async () => {
    const codec = new EncryptionCodec([NEW, OLD]);
    const [one, two] = await codec.encode([payload(), payload()]);
    assert.ok(one && two);
    assert.equal(Buffer.from(one.metadata?.encoding ?? []).toString(), 'binary/encrypted');
    assert.equal(Buffer.from(one.metadata?.['encryption-key-id'] ?? []).toString(), 'new');
    assert.doesNotMatch(textOf(one), /claim_01|deadlineMs|json/);
    assert.notDeepEqual(one.data, two.data);
    assert.deepEqual((await codec.decode([one, two])).map(readPayload), [VALUE, VALUE]);
  });

  it('decrypts what an older key of the ring encrypted, and says which key is missing', async () => {
    const sealed = await new EncryptionCodec([OLD]).encode([payload()]);
    const [opened] = await new EncryptionCodec([NEW, OLD]).decode(sealed);
    assert.deepEqual(readPayload(opened), VALUE);
    await assert.rejects(
      new EncryptionCodec([NEW]).decode(sealed),
      /CODEC_KEYS has no key "old": add it back behind the first one/,
    );
    await assert.rejects(new EncryptionCodec(null).decode(sealed), /CODEC_KEYS is not set/);
  });

  it('refuses a payload that was altered', async () => {
    const codec = new EncryptionCodec([NEW]);
    const [sealed] = await codec.encode([payload()]);
    const data = Buffer.from(sealed?.data ?? []);
    data.writeUInt8(data.readUInt8(data.length - 1) ^ 1, data.length - 1);
    await assert.rejects(codec.decode([{ ...sealed, data }]));
  });

  it('leaves unencrypted payloads alone, and encrypts nothing without keys', async () => {
    assert.deepEqual(await new EncryptionCodec([NEW]).decode([payload()]), [payload()]);
    assert.deepEqual(await new EncryptionCodec(null).encode([payload()]), [payload()]);
  });

  it('encrypts and decrypts a payload without data', async () => {
    const codec = new EncryptionCodec([NEW]);
    const nothing = defaultPayloadConverter.toPayload(undefined);
    const [opened] = await codec.decode(await codec.encode([nothing]));
    assert.equal(readPayload(opened), undefined);
  });
});
