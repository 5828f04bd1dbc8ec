import { setTimeout as delay } from 'node:timers/promises';
import type { Increase } from 'increase';
import { postSigned } from '../post-signed.ts';
import type { Bank } from './bank.ts';

type Subscription = Bank['books']['subscriptions'][number];

/** Increase posts again 7 times, further and further apart. */
const REPEATS_AFTER_MS = [50, 100, 200, 400, 800, 1_600, 3_200];

/**
 * Posts events to whoever has subscribed, as real senders do: late, twice, in any order, now and then lost.
 */
export class Delivery {
  readonly #bank: Bank;
  #held: Increase.Event[] | null = null;
  readonly #running = new Set<Promise<void>>();
  #stopped = false;
  /** How often each event is posted. 0 loses it. */
  copies = 1;
  /** Whether signatures are made with another secret. */
  signsWrongly = false;
  /** Every answer that a post got; 0 for none. */
  readonly answers: { category: string; status: number }[] = [];

  constructor(bank: Bank) {
    this.#bank = bank;
    bank.onEvent = (event) => this.send(event);
  }

  /** Keeps events until {@link release}. */
  hold(): void {
    this.#held ??= [];
  }

  /** Posts what was kept. @param order in which order; events may be missing in it, or be there twice */
  release(order: (held: Increase.Event[]) => Increase.Event[] = (held) => held): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const event of order(held)) this.send(event);
  }

  send(event: Increase.Event): void {
    if (this.#held !== null) {
      this.#held.push(event);
      return;
    }
    for (const to of this.#subscribers(event.category)) {
      for (let copy = 0; copy < this.copies; copy++) this.#run(this.#post(event, to, REPEATS_AFTER_MS));
    }
  }

  /** A real-time decision is posted once. @returns false if nobody has subscribed to them */
  ask(decision: Increase.RealTimeDecision): boolean {
    const category = `real_time_decision.${decision.category}` as const;
    const [to] = this.#subscribers(category);
    if (to === undefined) return false;
    const event: Increase.Event = {
      id: decision.id.replace('real_time_decision', 'event'),
      type: 'event',
      category,
      associated_object_id: decision.id,
      associated_object_type: 'real_time_decision',
      created_at: this.#bank.now(),
    };
    for (let copy = 0; copy < this.copies; copy++) this.#run(this.#post(event, to, []));
    return true;
  }

  /** Returns once everything is posted. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.idle();
  }

  /** Real-time decisions go only to the subscription that is for them alone. */
  #subscribers(category: Increase.Event['category']): Subscription[] {
    const isDecision = category.startsWith('real_time_decision.');
    return this.#bank.books.subscriptions.filter(({ status, selected_event_categories: selected }) => {
      if (status !== 'active') return false;
      if (selected === null) return !isDecision;
      return selected.some(({ event_category }) => event_category === category);
    });
  }

  #run(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async #post(event: Increase.Event, to: Subscription, repeatsAfterMs: readonly number[]): Promise<void> {
    const post = { id: event.id, body: JSON.stringify(event) };
    for (const waitMs of [...repeatsAfterMs, 0]) {
      const key = Buffer.from(this.signsWrongly ? 'another secret' : to.shared_secret);
      const answer = await postSigned(to.url, post, [key], { timeoutMs: 10_000 });
      const status = answer?.status ?? 0;
      this.answers.push({ category: event.category, status });
      if ((status >= 200 && status < 300) || this.#stopped) return;
      await delay(waitMs);
      if (this.#stopped) return;
    }
  }
}
