import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export interface RingKey {
  id: string;
  /** 32 bytes. */
  secret: Buffer;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The keys of ENCRYPTION_KEYS: the first seals, each can open what it sealed. A sealed value is
 * `<length of key id, 1 byte><key id><nonce><ciphertext><tag>` (AES-256-GCM), bound to the context it was sealed for.
 */
export class KeyRing {
  readonly #keys: readonly RingKey[];

  constructor(keys: readonly RingKey[]) {
    if (keys.length === 0) throw new Error('a key ring needs at least one key');
    this.#keys = keys;
  }

  get primary(): RingKey {
    return this.#keys[0] as RingKey;
  }

  get oldest(): RingKey {
    return this.#keys.at(-1) as RingKey;
  }

  seal(plain: string, context: string): Buffer {
    const { id, secret } = this.primary;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(context));
    const idBytes = Buffer.from(id);
    const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(idBytes.length), idBytes, nonce, text, cipher.getAuthTag()]);
  }

  /** @throws Error where the key is not in the ring, or the value was changed or sealed for another context. */
  open(sealed: Buffer, context: string): string {
    const start = 1 + (sealed[0] ?? 0);
    const id = sealed.toString('utf8', 1, start);
    const key = this.#keys.find((candidate) => candidate.id === id);
    if (key === undefined)
      throw new Error(`ENCRYPTION_KEYS has no key "${id}": add it back behind the first one`);
    const nonce = sealed.subarray(start, start + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce)
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    const text = sealed.subarray(start + NONCE_BYTES, -TAG_BYTES);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  }

  /** A 32-byte key for one purpose from each key of the ring, the current one first. */
  derive(purpose: string): Buffer[] {
    return this.#keys.map((key) => Buffer.from(hkdfSync('sha256', key.secret, '', purpose, 32)));
  }

  /** {@link derive} from one key by its id: what was made with it stays the same when the ring is rotated. */
  deriveFrom(keyId: string, purpose: string): Buffer {
    const key = this.#keys.find((candidate) => candidate.id === keyId);
    if (key === undefined)
      throw new Error(`ENCRYPTION_KEYS has no key "${keyId}": add it back behind the first one`);
    return Buffer.from(hkdfSync('sha256', key.secret, '', purpose, 32));
  }
}
