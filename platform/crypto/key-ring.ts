import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

export interface RingKey {
  id: string;
  /** 32 bytes. */
  secret: Buffer;
}

/** The context that a key's root is sealed for. */
export const rootContext = (keyId: string): string => `ring-key/${keyId}`;

/** The id of the key that a value is sealed under. */
export const readKeyId = (sealed: Buffer): string => sealed.toString('utf8', 1, 1 + (sealed[0] ?? 0));

const hmac = (key: KeyObject | Buffer, data: Buffer | string): Buffer =>
  createHmac('sha256', key).update(data).digest();

const NO_SALT = Buffer.alloc(32);
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The keys of ENCRYPTION_KEYS, or of CODEC_KEYS: the first one seals, and each opens what it sealed. A sealed
 * value is `<length of key id, 1 byte><key id><nonce><ciphertext><tag>` (AES-256-GCM), bound to the context
 * it was sealed for.
 */
export class KeyRing {
  // As key objects, because OpenSSL takes three times as long to set up with raw bytes.
  readonly #keys: readonly { id: string; key: KeyObject }[];
  readonly #variable: string;
  /** The root that other keys are derived from, by key id. It includes keys that have left the ring. */
  readonly #roots = new Map<string, KeyObject>();

  /** @param variable the environment variable that configures the keys, for error messages */
  constructor(keys: readonly RingKey[], variable = 'ENCRYPTION_KEYS') {
    if (keys.length === 0) throw new Error('a key ring needs at least one key');
    this.#variable = variable;
    this.#keys = keys.map(({ id, secret }) => ({ id, key: createSecretKey(secret) }));
    for (const { id, secret } of keys) this.#roots.set(id, createSecretKey(hmac(NO_SALT, secret)));
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

  /** @throws Error if the key is not in the ring, or the value was changed or sealed for another context. */
  open(sealed: Buffer, context: string): string {
    return this.openBytes(sealed, context).toString('utf8');
  }

  /** Like {@link open}, for bytes. */
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

  /**
   * A 32-byte key for one purpose, derived from each key of the ring, the current one first, and from keys
   * that have left it.
   */
  derive(purpose: string): [current: KeyObject, ...others: KeyObject[]] {
    const [, ...others] = this.#roots.keys();
    return [this.deriveFrom(this.primaryId, purpose), ...others.map((id) => this.deriveFrom(id, purpose))];
  }

  /**
   * Like {@link derive}, from one key by its id, so that the result survives a rotation. This is HKDF with
   * SHA-256 and no salt (RFC 5869): its extract step makes the root, and this is the expand step.
   */
  deriveFrom(keyId: string, purpose: string): KeyObject {
    const root = this.#roots.get(keyId) ?? this.#find(keyId);
    return createSecretKey(hmac(root, `${purpose}\x01`));
  }

  /** The ids of the keys, the current one first. */
  get ids(): string[] {
    return this.#keys.map(({ id }) => id);
  }

  /**
   * A key's root, sealed with the current key, to {@link keep} deriving from it after the key has left the
   * ring.
   */
  sealRoot(keyId: string): Buffer {
    const root = this.#roots.get(keyId) ?? this.#find(keyId);
    return this.seal(root.export().toString('base64'), rootContext(keyId));
  }

  /** Continues to derive from a key that has left the ring. This can't open what that key sealed. */
  keep(keyId: string, sealedRoot: Buffer): void {
    if (this.#roots.has(keyId)) return;
    const root = Buffer.from(this.open(sealedRoot, rootContext(keyId)), 'base64');
    this.#roots.set(keyId, createSecretKey(root));
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
