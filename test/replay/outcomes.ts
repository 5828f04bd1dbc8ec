import type { Mode } from '../../domain/mode.ts';

export interface Outcome {
  mode: Mode;
  amountCents: number;
  /** Without funds where false. */
  funded?: false;
  resolve?: 'issued' | 'failed';
}

const live = (digits: number): Outcome => ({ mode: 'live', amountCents: 10_000 + digits });

/** Every outcome of issueCard; each has its history in histories/, named as here. */
export const OUTCOMES: Record<string, Outcome> = {
  'test-active': { mode: 'test', amountCents: 10_000 },
  'test-refused': { mode: 'test', amountCents: 10_000, funded: false },
  'live-refused': { ...live(0), funded: false },
  'live-active': live(0),
  'live-declined': live(42),
  'live-later-active': live(41),
  'live-later-failed': live(43),
  'live-answer-lost': live(44),
  'live-callback-lost': live(45),
  'live-callback-twice': live(46),
  'live-network-unavailable-first': live(48),
  'live-resolved-issued': { ...live(47), resolve: 'issued' },
  'live-resolved-failed': { ...live(47), resolve: 'failed' },
};

/** Whose cards they were: nothing of this may be in a history. */
export const CARDHOLDER = {
  card_name: 'Quokka travel',
  cardholder_first_name: 'Zebulon',
  cardholder_last_name: 'Quagmire',
  email: 'zebulon@quagmire.example',
};

export const historyFile = (name: string): URL => new URL(`./histories/${name}.json`, import.meta.url);
