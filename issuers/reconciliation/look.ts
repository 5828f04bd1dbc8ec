import type { Logger } from 'pino';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { CardNetwork, ListedCard, ListedMovement, UnreadableObject } from '../card-network.ts';
import type { Verdict } from './compare-cards.ts';
import { type Finding, findingKey } from './findings.ts';
import type { OurObject, OurPages } from './ours.ts';

/** How many listed objects are compared at a time, and how many of ours. */
const COMPARED_AT_ONCE = 200;
export const READ_AT_ONCE = 1_000;
/** A run notes no more than this, so that it needs no more memory for a million. */
const MAX_FINDINGS = 10_000;

export interface ReconciliationOptions {
  orm: Orm;
  ring: KeyRing;
  network: CardNetwork;
  /** CARD_NETWORK */
  cardNetwork: string;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** The period that is compared begins here, and ends now. */
  since: Date;
  /** How long what differs gets to become the same, before it is looked at again. */
  graceMs: number;
  signal: AbortSignal;
  /** Called every few seconds while it runs, whatever it waits for. */
  onProgress(): Promise<unknown>;
  logger: Logger;
}

/** What a look has found. */
export interface Comparison {
  matched: number;
  /** By their keys. */
  findings: Map<string, Finding>;
  /** Payments that differed and were corrected. */
  corrected: Finding[];
  /** Whether payments differ that the next look corrects. */
  isToCorrect: boolean;
  isTruncated: boolean;
}

/** One look at both records. */
export interface Look extends ReconciliationOptions {
  runId: string;
  /** An earlier look: a payment that differed then, too, is corrected. */
  before: Comparison | null;
  found: Comparison;
  listedSince: Date;
  until: Date;
}

export const wasFound = (before: Comparison | null, finding: Finding): boolean =>
  before !== null && (before.isTruncated || before.findings.has(findingKey(finding)));

export function tally(found: Comparison, verdict: Verdict): void {
  if (verdict === 'matched') found.matched += 1;
  else if (verdict !== 'under_way') {
    if (found.findings.size < MAX_FINDINGS) found.findings.set(findingKey(verdict), verdict);
    else found.isTruncated = true;
  }
}

export function tallyCorrected(found: Comparison, finding: Finding): void {
  if (found.corrected.length < MAX_FINDINGS) found.corrected.push(finding);
  else found.isTruncated = true;
}

export function tallyUnreadable(
  found: Comparison,
  kind: Finding['kind'],
  objects: readonly (ListedCard | ListedMovement | PaymentSnapshot | UnreadableObject)[],
): void {
  for (const object of objects) {
    if (!('networkId' in object)) continue;
    const { networkId: issuerId, unreadable } = object;
    const detail =
      `this release can't read what the issuer has under this id (${unreadable.join(', ')}), so it was not compared; ` +
      'a newer release may read it';
    tally(found, { problem: 'different', kind, id: null, issuerId, detail });
  }
}

/** Which of ours in the period the network has not listed, a page at a time. */
export async function* missingAtNetwork(
  { orm, runId, since, until: before, signal }: Look,
  { prefix, read }: OurPages,
): AsyncGenerator<OurObject> {
  let after: string = lowestId(prefix, since);
  const until = lowestId(prefix, before);
  for (;;) {
    signal.throwIfAborted();
    const page = await read(orm.em.fork(), { runId, after, until, limit: READ_AT_ONCE });
    yield* page.filter(({ is_missing: isMissing }) => isMissing);
    const last = page.at(-1);
    if (last === undefined || page.length < READ_AT_ONCE) return;
    after = last.id;
  }
}

/** Nothing of ours is held open while the network takes its time. */
export async function* inBatches<Item>(items: AsyncIterable<Item>, { signal }: Look): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < COMPARED_AT_ONCE) continue;
    signal.throwIfAborted();
    yield batch;
    batch = [];
  }
  signal.throwIfAborted();
  if (batch.length > 0) yield batch;
}
