import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Lithic from 'lithic';
import { z } from 'zod';
import { AUTHORIZATIONS_PATH, EVENTS_PATH } from '../../issuers/lithic/wire.ts';
import { postSigned } from '../post-signed.ts';
import type { Transaction } from './objects.ts';

export interface PostOptions {
  /** Whose paths it posts to; null while nobody is there. */
  receiverUrl: string | null;
  webhookSecrets: readonly string[];
  asaSecrets: readonly string[];
  /** How long a request of Auth Stream Access waits for its answer. */
  asaTimeoutMs: number;
}

/** An event that was sent, or is held back. Sent again, it has the same id and bytes. */
export interface EventPost {
  id: string;
  body: string;
}

/** What Lithic posts to us. */
export class Posts {
  readonly options: PostOptions;
  /** Every event, in the order in which it came about. */
  readonly events: EventPost[] = [];
  /** Whether events wait until somebody sends them. */
  holdsEvents = false;
  /** Whether answers to requests come too late for it. */
  isDeaf = false;
  /** How often a request of Auth Stream Access was posted, repetitions included. */
  asked = 0;
  readonly #sending = new Set<Promise<unknown>>();
  #isStopped = false;

  constructor(options: PostOptions) {
    this.options = options;
  }

  /** Tells about a transaction as it is now. */
  tell(transaction: Transaction): void {
    const told: Lithic.CardTransactionUpdatedWebhookEvent = {
      event_type: 'card_transaction.updated',
      ...transaction,
    };
    const event = { id: `msg_${randomUUID()}`, body: JSON.stringify(told) };
    this.events.push(event);
    if (this.holdsEvents || this.options.receiverUrl === null) return;
    const sending = this.#sendUntilTaken(event);
    this.#sending.add(sending);
    void sending.finally(() => this.#sending.delete(sending));
  }

  /** Once every event that is being sent is taken. */
  async idle(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  /** Sends one event, once. @returns the answer's status; 0 without any */
  async send(
    event: EventPost,
    { secrets = this.options.webhookSecrets, at = new Date() } = {},
  ): Promise<number> {
    const answer = await this.#post(EVENTS_PATH, event, secrets, { at, timeoutMs: 5_000 });
    return answer?.status ?? 0;
  }

  /** At least once: again after whatever is not a 2xx. */
  async #sendUntilTaken(event: EventPost): Promise<void> {
    for (let pauseMs = 100; !this.#isStopped; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      const status = await this.send(event);
      if (status >= 200 && status < 300) return;
      await delay(pauseMs);
    }
  }

  /**
   * Asks whether a card pays: after a 5xx or a lost connection once more at once. @returns the result; null
   * without any in time
   */
  async ask(asked: Lithic.CardAuthorizationApprovalRequestWebhookEvent): Promise<string | null> {
    const post = { id: `msg_${randomUUID()}`, body: JSON.stringify(asked) };
    const until = Date.now() + this.options.asaTimeoutMs;
    for (let attempt = 1; attempt <= 2; attempt++) {
      this.asked++;
      const limits = { at: new Date(), timeoutMs: Math.max(1, until - Date.now()) };
      const answer = await this.#post(AUTHORIZATIONS_PATH, post, this.options.asaSecrets, limits);
      if (this.isDeaf) return null;
      if (answer !== null && answer.status < 500) {
        if (answer.status !== 200) return 'MALFORMED';
        const { token, result } = AsaAnswer.parse(JSON.parse(answer.text));
        return token === asked.token ? result : 'MALFORMED';
      }
      if (Date.now() >= until) break;
    }
    return null;
  }

  #post(path: string, event: EventPost, secrets: readonly string[], limits: { at: Date; timeoutMs: number }) {
    const keys = secrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
    return postSigned((this.options.receiverUrl ?? '') + path, event, keys, limits);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.allSettled(this.#sending);
  }
}

const AsaAnswer = z.object({ token: z.string().optional(), result: z.string().default('MALFORMED') });
