import { CommanderError } from 'commander';
import type { OperatorConfig } from '../config/operator.ts';
import type { Answer } from './answer.ts';
import { explainError } from './explain-error.ts';
import { createProgram } from './program.ts';
import { renderJson, renderText, visible } from './render.ts';
import { createSession } from './session.ts';
import { WrongUsage } from './wrong-usage.ts';

export interface OperatorOptions {
  readConfig(): OperatorConfig;
  /** Who is recorded as having made the changes. */
  actor: string;
  out(text: string): void;
  err(text: string): void;
  /** Asks the person at the terminal; left out where there is nobody to ask. */
  confirm?(question: string): Promise<boolean>;
  /** How long `card resolve` waits for the card to change. */
  resolveWaitMs?: number;
}

/**
 * Runs one command line.
 * @param args without the program's name
 * @returns the exit code: 0, 1 where the command failed or was refused, 2 for wrong usage (operations.md).
 */
export async function runOperator(args: readonly string[], options: OperatorOptions): Promise<number> {
  const { out } = options;
  const err = (text: string) => options.err(text.split('\n').map(visible).join('\n'));
  const session = createSession(options.readConfig, options.actor, err);
  let failed = false;
  const program = await createProgram(args, {
    session,
    out,
    err,
    confirm: async (question) => options.confirm?.(question) ?? null,
    resolveWaitMs: options.resolveWaitMs ?? 15_000,
    print: (answer: Answer) => {
      out(program.opts<{ json?: true }>().json ? renderJson(answer) : renderText(answer));
      failed = answer.failed ?? false;
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return failed ? 1 : 0;
  } catch (error) {
    // commander has said what it has to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    err(`${await explainError(error, () => session.config)}\n`);
    return error instanceof WrongUsage ? 2 : 1;
  } finally {
    await session.close();
  }
}
