import { Command } from 'commander';
import type { Answer } from './answer.ts';
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

type Noun = (noun: Command, verbs: Verbs) => void;

/** What each noun is about, and the file of its verbs, which a command line loads when it names the noun. */
const NOUNS: Record<string, readonly [about: string, load: () => Promise<Noun>]> = {
  partner: ["partners' accounts", async () => (await import('./nouns/partner.ts')).partnerNoun],
  key: ["partners' API keys", async () => (await import('./nouns/key.ts')).keyNoun],
  product: ["the platform's card products", async () => (await import('./nouns/product.ts')).productNoun],
  card: ['cards and their issuance', async () => (await import('./nouns/card.ts')).cardNoun],
  topup: ['card top-ups', async () => (await import('./nouns/topup.ts')).topUpNoun],
  deposit: ['USDT deposits and their payments', async () => (await import('./nouns/deposit.ts')).depositNoun],
  tron: ['the scan of the TRON chain', async () => (await import('./nouns/tron.ts')).tronNoun],
  transaction: ['card transactions', async () => (await import('./nouns/transaction.ts')).transactionNoun],
  'network-event': [
    'transactions that the simulated network sends for live cards',
    async () => (await import('./nouns/network-event.ts')).networkEventNoun,
  ],
  'webhook-endpoint': [
    "partners' webhook endpoints",
    async () => (await import('./nouns/webhook-endpoint.ts')).webhookEndpointNoun,
  ],
  webhook: [
    "partners' events and their delivery",
    async () => (await import('./nouns/webhook.ts')).webhookNoun,
  ],
  ledger: ['the ledger: balances and invariants', async () => (await import('./nouns/ledger.ts')).ledgerNoun],
  attention: [
    'what needs a decision or a look',
    async () => (await import('./nouns/attention.ts')).attentionNoun,
  ],
  audit: ['who changed or revealed what, and when', async () => (await import('./nouns/audit.ts')).auditNoun],
};

/**
 * The grammar of the command line, with the verbs of the nouns that `args` name: the others are only listed.
 * Errors of usage are thrown as CommanderError.
 */
export async function createProgram(
  args: readonly string[],
  { session, out, err, confirm, print, resolveWaitMs }: ProgramOptions,
): Promise<Command> {
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
    .description("The card issuing service's command line for operators. Amounts are integers, in US cents.")
    .option('--json', 'print one JSON value and nothing else')
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: err })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(see --help for usage and examples)')
    .addHelpText(
      'after',
      verbs.examples('partner create --name "Acme Ltd"', 'card resolve --help', 'attention list --json'),
    );
  for (const [name, [about, load]] of Object.entries(NOUNS)) {
    const noun = program.command(name).description(about);
    if (args.includes(name)) (await load())(noun, verbs);
  }
  return program;
}
