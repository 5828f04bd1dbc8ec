import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { isoTime } from '../domain/iso-time.ts';
import { lowestId, readIdTime } from '../platform/crypto/new-id.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { AuditRow } from './audit-reads.ts';

const PAGE = 1_000;
const MAX_PROBLEMS_LISTED = 100;

interface Problem {
  /** The entry's id; of a missing or wrong link, its number in the chain. */
  id: string;
  problem: 'changed' | 'removed' | 'inserted' | 'chain_broken';
}

/** A link that is known from an earlier head. */
interface Anchor {
  seq: string;
  hash: string;
}

/**
 * Checks every link of the chain and every entry, a page at a time (docs/decisions/audit-chain.md). Hashes
 * are computed here, not by the database.
 * @param check.since entries from before may be gone, as after a year was dropped; null: none may
 * @param check.anchor the chain must contain this link
 */
export async function verifyAudit(
  orm: Orm,
  { since, anchor }: { since: Date | null; anchor: Anchor | null },
) {
  const problems: Problem[] = [];
  let problemCount = 0;
  const report = (id: string, problem: Problem['problem']) => {
    problemCount += 1;
    if (problems.length < MAX_PROBLEMS_LISTED) problems.push({ id, problem });
  };

  let seq = 0n;
  let previous: Buffer = Buffer.alloc(0);
  let chainedAt: string | null = null;
  let isAnchored = anchor === null;
  for (;;) {
    const links = await linksAfter(orm.em.fork(), { after: String(seq), limit: PAGE });
    for (const link of links) {
      const digest = link.digest.toString('hex');
      const text = `${link.seq} ${link.id} ${digest} ${link.chained_us}`;
      const hash = createHash('sha256').update(previous).update(text).digest();
      if (BigInt(link.seq) !== seq + 1n || !hash.equals(link.hash)) report(link.seq, 'chain_broken');
      if (link.content === null) {
        if (since === null || readIdTime(link.id) >= since) report(link.id, 'removed');
      } else if (createHash('sha256').update(link.content).digest('hex') !== digest) {
        report(link.id, 'changed');
      }
      if (link.seq === anchor?.seq) isAnchored = link.hash.toString('hex') === anchor.hash;
      seq = BigInt(link.seq);
      previous = link.hash;
      chainedAt = link.chained_at;
    }
    if (links.length < PAGE) break;
  }
  if (!isAnchored) report(anchor?.seq ?? '', 'chain_broken');

  for (const { prefix, readPage } of ENTRIES) {
    for (let after: string = lowestId(prefix, since ?? new Date(0)); ; ) {
      const page = await readPage(orm.em.fork(), { after, limit: PAGE });
      for (const { id, is_known } of page) if (!is_known) report(id, 'inserted');
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.id;
    }
  }

  const [queue] = await waiting(orm.em.fork(), {});
  return {
    object: 'audit_verification',
    whole: problemCount === 0,
    /** Links of the chain. */
    checked: Number(seq),
    /**
     * The number and hash of the last link. Kept elsewhere, it shows later whether the chain was cut off or
     * made anew.
     */
    head: seq === 0n ? null : `${seq}:${previous.toString('hex')}`,
    /** When the last link was added: what is in the chain was recorded before. */
    chained_until: isoTime(chainedAt),
    /** Entries that are recorded but not in the chain yet, and the oldest one's time. */
    waiting: queue?.waiting ?? 0,
    waiting_since: isoTime(queue?.since ?? null),
    problem_count: problemCount,
    /** The first ones. */
    problems,
  };
}

const linksAfter = readStatement(
  (_, { after, limit }: { after: string; limit: number }) => sql<{
    seq: string;
    id: string;
    digest: Buffer;
    hash: Buffer;
    chained_at: string;
    chained_us: string;
    content: string | null;
  }>`
    SELECT c.seq, c.id, c.digest, c.hash, c.chained_at,
      (extract(epoch FROM c.chained_at) * 1000000)::bigint AS chained_us, r.content
    FROM (SELECT * FROM audit_chain WHERE seq > ${after}::bigint ORDER BY seq LIMIT ${limit}) c
      LEFT JOIN LATERAL audit_row(c.id) r ON true
    ORDER BY c.seq`,
);

/** An entry enters the chain and leaves the queue at once, so one statement sees it in one of the two. */
const knownIn = (table: 'audit_entry' | 'card_reveal' | 'refused_reveal') =>
  readStatement(
    (_, { after, limit }: { after: string; limit: number }) => sql<{ id: string; is_known: boolean }>`
      SELECT e.id, c.id IS NOT NULL OR q.id IS NOT NULL AS is_known
      FROM (SELECT id FROM ${sql.table(table)} WHERE id > ${after} ORDER BY id LIMIT ${limit}) e
        LEFT JOIN audit_chain c ON c.id = e.id LEFT JOIN audit_unchained q ON q.id = e.id
      ORDER BY e.id`,
    { acrossTenants: 'measurement' },
  );

const ENTRIES = [
  { prefix: 'aud', readPage: knownIn('audit_entry') },
  { prefix: 'rvl', readPage: knownIn('card_reveal') },
  { prefix: 'rvl', readPage: knownIn('refused_reveal') },
] as const;

const waiting = readStatement(
  () => sql<{ waiting: number; since: string | null }>`
    SELECT count(*)::int AS waiting, min(queued_at) AS since FROM audit_unchained`,
);

type ExportedEntry = AuditRow & {
  /** The entry's link; null if it is not in the chain yet. */
  chain: { seq: number; hash: string } | null;
};

/**
 * The entries recorded since a time, in the order of the chain, then those that are not in it yet.
 * @returns pages, so that however long the log is, it needs little memory
 */
export async function* exportAudit(orm: Orm, since: Date): AsyncGenerator<ExportedEntry[]> {
  const at = since.toISOString();
  const [first] = await firstLinkSince(orm.em.fork(), { at });
  let lastSeq = first?.before ?? '0';
  const unchained = new Set<string>();

  async function* chained(): AsyncGenerator<ExportedEntry[]> {
    for (;;) {
      const links = await chainedEntries(orm.em.fork(), { after: lastSeq, limit: PAGE });
      yield links.filter(({ id, at }) => new Date(at) >= since && !unchained.has(id)).map(present);
      lastSeq = links.at(-1)?.seq ?? lastSeq;
      if (links.length < PAGE) break;
    }
  }

  yield* chained();
  for (let after = ''; ; ) {
    const entries = await unchainedEntries(orm.em.fork(), { after, limit: PAGE });
    for (const { id } of entries) unchained.add(id);
    yield entries.filter((entry) => new Date(entry.at) >= since).map(present);
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE) break;
    after = last.id;
  }
  // What a worker has chained between the two is in neither.
  yield* chained();
}

type ExportRow = AuditRow & { seq: string | null; hash: Buffer | null };

const present = ({ seq, hash, ...entry }: ExportRow): ExportedEntry => ({
  ...entry,
  at: isoTime(entry.at),
  chain: seq === null || hash === null ? null : { seq: Number(seq), hash: hash.toString('hex') },
});

/** An entry is chained after it is recorded, but the two clocks can differ. */
const firstLinkSince = readStatement(
  (_, { at }: { at: string }) => sql<{ before: string | null }>`
    SELECT coalesce((SELECT min(seq) - 1 FROM audit_chain
        WHERE chained_at >= ${at}::timestamptz - interval '1 hour'), max(seq)) AS before FROM audit_chain`,
);

const ENTRY = sql`r.id, 'audit_entry' AS object, r.at, r.actor, r.action, r.subject, r.detail,
  r.operator, r.os_user, r.host, r.database_login, r.client_address`;

const chainedEntries = readStatement(
  (_, { after, limit }: { after: string; limit: number }) => sql<ExportRow>`
    SELECT c.seq, c.hash, ${ENTRY}
    FROM audit_chain c CROSS JOIN LATERAL audit_row(c.id) r
    WHERE c.seq > ${after}::bigint ORDER BY c.seq LIMIT ${limit}`,
);

const unchainedEntries = readStatement(
  (_, { after, limit }: { after: string; limit: number }) => sql<ExportRow>`
    SELECT NULL AS seq, NULL AS hash, ${ENTRY}
    FROM audit_unchained q CROSS JOIN LATERAL audit_row(q.id) r
    WHERE q.id > ${after} ORDER BY q.id LIMIT ${limit}`,
);
