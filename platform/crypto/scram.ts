import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/**
 * What PostgreSQL keeps of a password (SCRAM-SHA-256, RFC 5802). It can be sent in place of the password,
 * which then appears in no statement and no log.
 * @param password printable ASCII
 */
export function scramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  const serverKey = hmac('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}

/** As PostgreSQL does it. */
const ITERATIONS = 4_096;
