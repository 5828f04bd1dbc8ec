import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

export interface RingKey {
  id: string;
  /** 32 bytes. */
  secret: Buffer;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The keys of ENCRYPTION_KEYS, or of CODEC_KEYS: the first seals, each can open what it sealed. A sealed value is
 * `<length of key id, 1 byte><key id><nonce><ciphertext><tag>` (AES-256-GCM), bound to the context it was sealed for.
 */
export class KeyRing {
  // Key objects: OpenSSL takes three times as long to begin with the bytes of a key.
  readonly #keys: readonly { id: string; key: KeyObject }[];
  readonly #variable: string;

  /** @param variable where its keys are configured, for the error that names a missing one */
  constructor(keys: readonly RingKey[], variable = 'ENCRYPTION_KEYS') {
    if (keys.length === 0) throw new Error('a key ring needs at least one key');
    this.#variable = variable;
    this.#keys = keys.map(({ id, secret }) => ({ id, key: createSecretKey(secret) }));
  }

  get primaryId(): string {
    return this.#primary.id;
  }

  seal(plain: string | Uint8Array, context: string): Buffer {
    const { id, key } = this.#primary;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
    const idBytes = Buffer.from(id);
    const text = Buffer.concat([
      typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain),
      cipher.final(),
    ]);
    return Buffer.concat([Buffer.of(idBytes.length), idBytes, nonce, text, cipher.getAuthTag()]);
  }

  /** @throws Error where the key is not in the ring, or the value was changed or sealed for another context. */
  open(sealed: Buffer, context: string): string {
    return this.openBytes(sealed, context).toString('utf8');
  }

  /** As {@link open}. */
  openBytes(sealed: Buffer, context: string): Buffer {
    const start = 1 + (sealed[0] ?? 0);
    const id = sealed.toString('utf8', 1, start);
    const key = this.#find(id);
    const nonce = sealed.subarray(start, start + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce)
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    const text = sealed.subarray(start + NONCE_BYTES, -TAG_BYTES);
    return Buffer.concat([decipher.update(text), decipher.final()]);
  }

  /** A 32-byte key for one purpose from each key of the ring, the current one first. */
  derive(purpose: string): [current: KeyObject, ...others: KeyObject[]] {
    const [, ...others] = this.#keys;
    return [
      this.deriveFrom(this.primaryId, purpose),
      ...others.map(({ id }) => this.deriveFrom(id, purpose)),
    ];
  }

  /** {@link derive} from one key by its id: what was made with it stays the same when the ring is rotated. */
  deriveFrom(keyId: string, purpose: string): KeyObject {
    return createSecretKey(Buffer.from(hkdfSync('sha256', this.#find(keyId), '', purpose, 32)));
  }

  get #primary() {
    return this.#keys[0] as { id: string; key: KeyObject };
  }

  #find(id: string): KeyObject {
    const found = this.#keys.find((candidate) => candidate.id === id);
    if (found === undefined)
      throw new Error(`${this.#variable} has no key "${id}": add it back behind the first one`);
    return found.key;
  }
}
