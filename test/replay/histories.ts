import { readdirSync } from 'node:fs';
import { CHANGE_CARD_STATUS } from './change-card-status.ts';
import { DELIVER_WEBHOOK } from './deliver-webhook.ts';
import { ISSUE_CARD } from './issue-card.ts';
import type { Recording } from './recording.ts';
import { SCAN_CHAIN } from './scan-chain.ts';
import { TOP_UP_CARD, WITHDRAW_FROM_CARD } from './transfer.ts';
import { WATCH_DEPOSIT } from './watch-deposit.ts';

const WORKFLOWS: Record<string, Record<string, Recording>> = {
  'change-card-status': CHANGE_CARD_STATUS,
  'deliver-webhook': DELIVER_WEBHOOK,
  'issue-card': ISSUE_CARD,
  'scan-chain': SCAN_CHAIN,
  'top-up-card': TOP_UP_CARD,
  'watch-deposit': WATCH_DEPOSIT,
  'withdraw-from-card': WITHDRAW_FROM_CARD,
};

/** The recording of each outcome of each workflow, by its name `<workflow>/<outcome>`. */
export const RECORDINGS: Record<string, Recording> = Object.fromEntries(
  Object.entries(WORKFLOWS).flatMap(([workflow, outcomes]) =>
    Object.entries(outcomes).map(([outcome, recording]) => [`${workflow}/${outcome}`, recording]),
  ),
);

const HISTORIES = new URL('./histories/', import.meta.url);

export const historyFile = (name: string): URL => new URL(`${name}.json`, HISTORIES);

export const committedHistories = (): string[] =>
  readdirSync(HISTORIES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.replaceAll('\\', '/').slice(0, -'.json'.length))
    .sort();
