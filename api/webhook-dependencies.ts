import type { Client } from '@temporalio/client';
import type { CommandContext } from '../commands/command-context.ts';

/** What the routes of webhooks and events work with. */
export interface WebhookDependencies extends CommandContext {
  client: Client;
  webhooksTaskQueue: string;
  /** How long to wait after each failed attempt. */
  webhookDelaysMs: number[];
  webhookAllowLoopbackHttp: boolean;
  /** Tells the relays that there is something to send. */
  eventsWritten(): void;
}
