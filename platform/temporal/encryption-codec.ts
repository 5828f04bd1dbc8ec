import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { KeyRing, type RingKey } from '../crypto/key-ring.ts';

const { Payload: PayloadMessage } = proto.temporal.api.common.v1;

const ENCODING = 'binary/encrypted';
/** The context that payloads are sealed for, so that they can't be opened as anything else. */
const CONTEXT = 'temporal-payload';

/**
 * Encrypts every payload that goes to Temporal, and decrypts those that come back (AES-256-GCM, CODEC_KEYS).
 * Unencrypted payloads pass through, so histories from before the keys were configured, and input that an
 * operator sends by hand, stay readable. Without keys, it encrypts nothing.
 */
export class EncryptionCodec implements PayloadCodec {
  readonly #ring: KeyRing | null;

  constructor(keys: readonly RingKey[] | null) {
    this.#ring = keys && new KeyRing(keys, 'CODEC_KEYS');
  }

  seal(payload: Payload): Payload {
    if (this.#ring === null) return payload;
    return {
      metadata: {
        encoding: Buffer.from(ENCODING),
        // For people; the sealed data contains it too.
        'encryption-key-id': Buffer.from(this.#ring.primaryId),
      },
      data: this.#ring.seal(PayloadMessage.encode(payload).finish(), CONTEXT),
    };
  }

  /**
   * @throws Error if the key is missing, or the payload was changed: a task that needs it fails and is
   * retried.
   */
  open(payload: Payload): Payload {
    const { encoding } = payload.metadata ?? {};
    if (encoding == null || Buffer.from(encoding).toString() !== ENCODING) return payload;
    if (this.#ring === null) throw new Error('a payload is encrypted, but CODEC_KEYS is not set');
    return PayloadMessage.decode(this.#ring.openBytes(Buffer.from(payload.data ?? []), CONTEXT));
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => this.seal(payload));
  }

  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => this.open(payload));
  }
}
