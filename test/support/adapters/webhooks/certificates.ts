import { generateKeyPairSync, randomBytes } from 'node:crypto';
import forge from 'node-forge';

const DAY_MS = 86_400_000;

export interface Certified {
  /** PEM, both. */
  cert: string;
  key: string;
}

export interface Authority {
  /** Its own certificate and the key to it, PEM. */
  ca: string;
  key: string;
  /** A certificate for these names and addresses, which holds from one day to the other, counted from today. */
  issue(subject: { hosts: string[]; fromDays?: number; toDays?: number }): Certified;
}

/** An authority of the test's own. */
export function createAuthority(name: string): Authority {
  const own = generateKeys();
  // One pair for all it certifies: making keys takes time, and no test is about them.
  const subjects = generateKeys();
  const certificate = (subject: string, publicKey: string, fromDays: number, toDays: number) => {
    const made = forge.pki.createCertificate();
    made.publicKey = forge.pki.publicKeyFromPem(publicKey);
    made.serialNumber = `01${randomBytes(8).toString('hex')}`;
    made.validity.notBefore = new Date(Date.now() + fromDays * DAY_MS);
    made.validity.notAfter = new Date(Date.now() + toDays * DAY_MS);
    made.setSubject([{ name: 'commonName', value: subject }]);
    made.setIssuer([{ name: 'commonName', value: name }]);
    return made;
  };
  const signed = (made: forge.pki.Certificate, extension: object) => {
    made.setExtensions([extension]);
    made.sign(forge.pki.privateKeyFromPem(own.key), forge.md.sha256.create());
    return forge.pki.certificateToPem(made);
  };
  return {
    key: own.key,
    ca: signed(certificate(name, own.publicKey, -30, 30), { name: 'basicConstraints', cA: true }),
    issue: ({ hosts, fromDays = -1, toDays = 1 }) => {
      const altNames = hosts.map((host) =>
        /^[\d.]+$/.test(host) ? { type: 7, ip: host } : { type: 2, value: host },
      );
      const made = certificate(hosts[0] ?? '', subjects.publicKey, fromDays, toDays);
      return { cert: signed(made, { name: 'subjectAltName', altNames }), key: subjects.key };
    },
  };
}

function generateKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  return { publicKey, key: privateKey };
}
