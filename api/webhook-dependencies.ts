import type { CommandContext } from '../commands/command-context.ts';

/** What the routes of webhooks and events work with. */
export interface WebhookDependencies extends CommandContext {
  webhookAllowLoopbackHttp: boolean;
  /** Tells the relays that there is something to send. */
  eventsWritten(): void;
}
