import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Lithic from 'lithic';
import { request } from 'undici';
import { z } from 'zod';
import { AUTHORIZATIONS_PATH, EVENTS_PATH } from '../../issuers/lithic/wire.ts';
import { signStandardWebhook } from '../../issuers/standard-webhooks.ts';
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
  send(event: EventPost, { secrets = this.options.webhookSecrets, at = new Date() } = {}): Promise<number> {
    return this.#post(EVENTS_PATH, event, secrets, { at, timeoutMs: 5_000 }).then(
      ({ status }) => status,
      () => 0,
    );
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
      const answer = await this.#post(AUTHORIZATIONS_PATH, post, this.options.asaSecrets, limits).catch(
        () => null,
      );
      if (this.isDeaf) return null;
      if (answer !== null && answer.status < 500) {
        const read = AsaAnswer.safeParse(answer.body);
        const isAbout = read.data?.token === asked.token;
        return answer.status === 200 && isAbout ? (read.data?.result ?? null) : 'MALFORMED';
      }
      if (Date.now() >= until) break;
    }
    return null;
  }

  async #post(
    path: string,
    { id, body }: EventPost,
    secrets: readonly string[],
    { at, timeoutMs }: { at: Date; timeoutMs: number },
  ): Promise<{ status: number; body: unknown }> {
    const timestamp = String(Math.floor(at.getTime() / 1_000));
    const signatures = secrets.map((secret) =>
      signStandardWebhook({ id, timestamp }, body, Buffer.from(secret.replace(/^whsec_/, ''), 'base64')),
    );
    const response = await request((this.options.receiverUrl ?? '') + path, {
      method: 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signatures.join(' '),
      },
      body,
    });
    const text = await response.body.text();
    return { status: response.statusCode, body: text === '' ? null : JSON.parse(text) };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.allSettled(this.#sending);
  }
}

const AsaAnswer = z.object({ token: z.string(), result: z.string() });
