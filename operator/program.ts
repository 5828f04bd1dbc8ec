import { Command, CommanderError } from 'commander';
import type { OperatorConfig } from '../platform/config/operator.ts';
import { explainError, WrongUsage } from './errors.ts';
import { renderJson, renderText, visible } from './render.ts';
import { createSession } from './session.ts';
import { addVerbs, type Noun, type Verbs } from './verbs.ts';

interface OperatorOptions {
  readConfig(): OperatorConfig;
  /**
   * The operating system's user and the machine, as user@host: the author of every change unless OPERATOR
   * says who it is.
   */
  actor: string;
  out(text: string): void;
  /**
   * Waits until what was printed has been read; leave it out if there is no way to know. Returns false if
   * nobody reads it.
   */
  outRead?(): Promise<boolean>;
  err(text: string): void;
  /** Asks the person at the terminal; leave it out if there is nobody to ask. */
  confirm?: ((question: string) => Promise<boolean>) | undefined;
  /**
   * How long `card resolve`, `topup resolve` and `withdrawal resolve` wait for a worker to apply the
   * decision.
   */
  resolveWaitMs?: number;
  /** How long `network reconcile` gives what differs to become the same. */
  reconcileGraceMs?: number;
}

/**
 * Runs one command line.
 * @param args without the program's name
 * @returns the exit code (docs/operator.md): 0, 1 if the command failed or was refused, 2 for wrong usage.
 */
export async function runOperator(args: readonly string[], options: OperatorOptions): Promise<number> {
  const { out } = options;
  const err = (text: string) => options.err(text.split('\n').map(visible).join('\n'));
  const session = createSession(options.readConfig, options.actor, err);
  const program = createProgram(out, err);
  let failed = false;
  const verbs: Verbs = {
    session,
    out: async (text) => {
      out(text);
      return (await options.outRead?.()) ?? true;
    },
    err,
    examples,
    confirm: async (question) => options.confirm?.(question) ?? null,
    resolveWaitMs: options.resolveWaitMs ?? 15_000,
    reconcileGraceMs: options.reconcileGraceMs ?? 20_000,
    print(answer) {
      if (answer === null) return;
      out(program.opts<{ json?: true }>().json ? renderJson(answer) : renderText(answer));
      failed = answer.failed ?? false;
    },
  };
  try {
    await addNouns(program, args, verbs);
    await program.parseAsync(args, { from: 'user' });
    return failed ? 1 : 0;
  } catch (error) {
    // commander has already printed its own errors, and help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    err(`${await explainError(error, () => session.config)}\n`);
    return error instanceof WrongUsage ? 2 : 1;
  } finally {
    await session.close();
  }
}

function createProgram(out: (text: string) => void, err: (text: string) => void): Command {
  return new Command('operator')
    .usage('<noun> <verb> [flags]')
    .description("The card issuing service's command line for operators. Amounts are integers, in US cents.")
    .option('--json', 'print one JSON value and nothing else')
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: err })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(see --help for usage and examples)')
    .addHelpText(
      'after',
      examples('partner create --name "Acme Ltd"', 'card resolve --help', 'attention list --json'),
    );
}

function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  npm run operator -- ${line}`).join('\n')}\n`;
}

const accounts = () => import('../accounts/operator.ts');
const keys = () => import('../accounts/key-operator.ts');
const cards = () => import('../cards/operator.ts');
const deposits = () => import('../deposits/operator.ts');

/** What each noun is about, and its verbs. */
const NOUNS: Record<string, readonly [about: string, load: () => Promise<Noun>]> = {
  partner: ["partners' accounts", loadPartner],
  adjustment: [
    'large adjustments that need a second operator',
    async () => (await accounts()).adjustmentNoun,
  ],
  login: ["operators' own database logins", async () => (await keys()).loginNoun],
  key: ["partners' API keys", async () => (await keys()).keyNoun],
  workbench: [
    "links that open a partner's workbench",
    async () => (await import('../accounts/workbench-operator.ts')).workbenchNoun,
  ],
  'key-ring': ['the encryption keys of the service', async () => (await import('./key-ring.ts')).keyRingNoun],
  product: [
    "the platform's card products",
    async () => (await import('../cards/product-operator.ts')).productNoun,
  ],
  card: ['cards and their issuance', loadCard],
  topup: ['card top-ups', async () => (await import('../cards/transfers/operator.ts')).topUpNoun],
  withdrawal: [
    'withdrawals from cards to the prepaid balance',
    async () => (await import('../cards/transfers/operator.ts')).withdrawalNoun,
  ],
  deposit: ['USDT deposits and their payments', async () => (await deposits()).depositNoun],
  tron: ['the scan of the TRON chain', async () => (await deposits()).tronNoun],
  authorization: [
    'what merchants hold on cards',
    async () => (await import('../payments/authorization-operator.ts')).authorizationNoun,
  ],
  transaction: [
    'card transactions',
    async () => (await import('../issuers/inbox/transaction-operator.ts')).transactionNoun,
  ],
  request: [
    "partners' requests: what they did",
    async () => (await import('../accounts/request-operator.ts')).requestNoun,
  ],
  operation: [
    "partners' operations: how far they are",
    async () => (await import('../requests/operator.ts')).operationNoun,
  ],
  network: [
    'the card network: whether its record and ours agree',
    async () => (await import('../issuers/reconciliation/operator.ts')).networkNoun,
  ],
  'network-event': [
    'what the card network says: its events, and those of the simulated one',
    async () => (await import('../issuers/inbox/network-event-operator.ts')).networkEventNoun,
  ],
  'true-up': [
    "what the card network has to move to or from cards' accounts",
    async () => (await import('../issuers/true-ups/operator.ts')).trueUpNoun,
  ],
  'webhook-endpoint': [
    "partners' webhook endpoints",
    async () => (await import('../webhooks/endpoint-operator.ts')).webhookEndpointNoun,
  ],
  webhook: ["partners' events and their delivery", loadWebhook],
  ledger: [
    'the ledger: balances and invariants',
    async () => (await import('../exports/operator.ts')).ledgerNoun,
  ],
  attention: ['what needs an operator', async () => (await import('../exports/operator.ts')).attentionNoun],
  restore: ['what to fix after a restore', async () => (await import('./restore.ts')).restoreNoun],
  audit: [
    'who changed or revealed what, and when',
    async () => (await import('../accounts/audit-operator.ts')).auditNoun,
  ],
};

async function loadPartner(): Promise<Noun> {
  const [{ partnerNoun }, { eraseCardholderVerb }] = await Promise.all([accounts(), cards()]);
  return { ...partnerNoun, 'erase-cardholder': eraseCardholderVerb };
}

async function loadCard(): Promise<Noun> {
  const { readAuthorizations } = await import('../payments/authorization-operator.ts');
  return (await cards()).cardNoun(readAuthorizations);
}

async function loadWebhook(): Promise<Noun> {
  const { readCard } = await import('../cards/reads.ts');
  return (await import('../webhooks/operator.ts')).webhookNoun(readCard);
}

/**
 * Lists every noun, but loads only the modules of those that `args` mention, which keeps every command fast.
 */
async function addNouns(program: Command, args: readonly string[], verbs: Verbs): Promise<void> {
  for (const [name, [about, load]] of Object.entries(NOUNS)) {
    const noun = program.command(name).description(about);
    if (!args.includes(name)) continue;
    addVerbs(noun, await load(), verbs);
  }
}
