import { Command } from 'commander';
import type { Answer } from './answer.ts';
import { attentionNoun } from './nouns/attention.ts';
import { auditNoun } from './nouns/audit.ts';
import { cardNoun } from './nouns/card.ts';
import { keyNoun } from './nouns/key.ts';
import { ledgerNoun } from './nouns/ledger.ts';
import { networkEventNoun } from './nouns/network-event.ts';
import { partnerNoun } from './nouns/partner.ts';
import { productNoun } from './nouns/product.ts';
import { topUpNoun } from './nouns/topup.ts';
import { transactionNoun } from './nouns/transaction.ts';
import { webhookNoun } from './nouns/webhook.ts';
import { webhookEndpointNoun } from './nouns/webhook-endpoint.ts';
import type { Session } from './session.ts';
import type { Verbs } from './verbs.ts';

export interface ProgramOptions {
  session: Session;
  out(text: string): void;
  err(text: string): void;
  confirm: Verbs['confirm'];
  print(answer: Answer): void;
  resolveWaitMs: number;
}

/** The grammar of the command line: one noun a file. Errors of usage are thrown as CommanderError. */
export function createProgram({ session, out, err, confirm, print, resolveWaitMs }: ProgramOptions): Command {
  const verbs: Verbs = {
    session,
    err,
    confirm,
    resolveWaitMs,
    verb:
      (work) =>
      async (...args) =>
        print(await work(...args)),
    examples: (...lines) =>
      `\nExamples:\n${lines.map((line) => `  npm run operator -- ${line}`).join('\n')}\n`,
  };
  const program = new Command('operator')
    .usage('<noun> <verb> [flags]')
    .description("The operator's command line of the card issuing service. Amounts are whole US cents.")
    .option('--json', 'print one JSON value and nothing else')
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: err })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(--help shows the usage and examples)')
    .addHelpText(
      'after',
      verbs.examples('partner create --name "Acme Ltd"', 'card resolve --help', 'attention list --json'),
    );
  for (const noun of [
    partnerNoun,
    keyNoun,
    productNoun,
    cardNoun,
    topUpNoun,
    transactionNoun,
    networkEventNoun,
    webhookEndpointNoun,
    webhookNoun,
    ledgerNoun,
    attentionNoun,
    auditNoun,
  ]) {
    noun(program, verbs);
  }
  return program;
}
