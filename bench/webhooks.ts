import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { newId } from '../platform/crypto/new-id.ts';
import { signEvent } from '../webhooks/secrets.ts';
import {
  describe,
  type Measurement,
  measure,
  median,
  medianNumber,
  readCpuSeconds,
} from './support/measure.ts';
import { startService } from './support/service.ts';
import {
  createEndpoints,
  PACED_PER_SECOND,
  pace,
  REPLAYED_EVENTS,
  requestBody,
  SECRET,
  saturate,
  startReplay,
  stream,
} from './webhook-load/load.ts';
import { type BenchReceiver, startBenchReceiver } from './webhook-receiver/start.ts';

const MANY = 10_000;
const FAILING_EVENTS = 2_000;
const REPLAY_ROUNDS = 5;
/** The 99th percentile of a round is its fifth worst event. */
const PACED_ROUNDS = 9;

/**
 * Measures the time from an event's commit to its receipt. It is compared with the same number of signed
 * POSTs from one process to the same receiver without a database.
 */
export async function run(): Promise<void> {
  const service = await startService({ worker: true });
  const receiver = await startBenchReceiver();
  try {
    const floor = await measureFloor(receiver);
    console.log(describe('bare signed POSTs, 64 in flight', floor));
    const healthy = await createEndpoints(service, receiver, { endpoints: 198 });
    // A warm-up: connections are made.
    await pace(service, receiver, healthy);
    const hanging = await createEndpoints(service, receiver, { endpoints: 2, hanging: true });
    const rounds: { alone: Measurement; beside: Measurement }[] = [];
    for (let round = 0; round < PACED_ROUNDS; round++) {
      const alone = await pace(service, receiver, healthy);
      rounds.push({ alone, beside: await pace(service, receiver, healthy, hanging) });
    }
    console.log(describe('198 endpoints, none hanging', median(rounds.map(({ alone }) => alone))));
    console.log(describe('the same beside 2 that hang', median(rounds.map(({ beside }) => beside))));
    const ratio = medianNumber(rounds.map(({ alone, beside }) => beside.p99Ms / alone.p99Ms));
    console.log(`ratio of p99: ${ratio.toFixed(2)} (goal less than 1.2)`);
    for (const endpoints of [1, 200]) {
      const to = await createEndpoints(service, receiver, { endpoints });
      const cpuBefore = await readCpuSeconds(service.workerPid);
      const all = await saturate(service, receiver, to, MANY);
      const cpuMs = (1_000 * ((await readCpuSeconds(service.workerPid)) - cpuBefore)) / MANY;
      console.log(describe(`events at once to ${endpoints} endpoint(s)`, all));
      console.log(
        `ratio: ${(all.perSecond / floor.perSecond).toFixed(2)} (goal at least 0.3); ${cpuMs.toFixed(2)} ms of the ` +
          "worker's CPU an event",
      );
      console.log(describe(`the same at ${PACED_PER_SECOND} a second`, await pace(service, receiver, to)));
      console.log(describe('the same at 4,000 a second', await stream(service, receiver, to, 4_000)));
    }
    // An event is received when its last endpoint has it.
    for (const endpoints of [1, 40]) {
      const to = await createEndpoints(service, receiver, { endpoints, ofEachAccount: 5 });
      const all = await saturate(service, receiver, to, MANY / 5);
      const what = `events at once to ${endpoints} account(s) with five endpoints`;
      console.log(describe(what, all));
      console.log(`that is ${Math.round(all.perSecond * 5)} deliveries a second`);
      console.log(describe(`the same at ${PACED_PER_SECOND} a second`, await pace(service, receiver, to)));
    }
    const other = await createEndpoints(service, receiver, { endpoints: 1 });
    const replay = await startReplay(service, receiver);
    const aloneMs = { same: [] as number[], other: [] as number[] };
    const besideMs = { same: [] as number[], other: [] as number[] };
    for (let round = 0; round < REPLAY_ROUNDS; round++) {
      aloneMs.same.push((await pace(service, receiver, replay.endpoint)).p50Ms);
      aloneMs.other.push((await pace(service, receiver, other)).p50Ms);
    }
    await replay.start();
    for (let round = 0; round < REPLAY_ROUNDS; round++) {
      besideMs.same.push((await pace(service, receiver, replay.endpoint)).p50Ms);
      besideMs.other.push((await pace(service, receiver, other)).p50Ms);
    }
    if ((await replay.read()).status !== 'running')
      throw new Error('the replay was over before the rounds were');
    for (const account of ['same', 'other'] as const) {
      const [alone, beside] = [medianNumber(aloneMs[account]), medianNumber(besideMs[account])];
      console.log(
        `a live event beside a replay of ${REPLAYED_EVENTS} events, ${account} account: p50 ${alone.toFixed(2)} ms alone, ` +
          `${beside.toFixed(2)} ms beside; ratio ${(beside / alone).toFixed(2)} (goal at most 2)`,
      );
    }
    while ((await replay.read()).status === 'running') await sleep(1_000);
    const { sent } = await replay.read();
    console.log(
      `the replay has sent ${sent} events, ${Math.round((1_000 * sent) / replay.tookMs())} a second`,
    );
    // Last, because their retries come at any later time.
    for (const endpoints of [1, 200]) {
      const failing = await createEndpoints(service, receiver, { endpoints, failing: 0.1 });
      console.log(
        describe(
          `${endpoints} endpoint(s), 10 % of events failing`,
          await saturate(service, receiver, failing, FAILING_EVENTS),
        ),
      );
    }
  } finally {
    receiver.stop();
    await service.stop();
  }
}

/** Signed POSTs from one process, without a database. */
async function measureFloor({ origin, forget }: BenchReceiver): Promise<Measurement> {
  const pool = new Pool(origin, { connections: 64 });
  const floor = await measure(MANY, 64, async () => {
    const eventId = newId('evt');
    const body = requestBody(eventId);
    const nowMs = Date.now();
    const headers = signEvent({ eventId, body, secrets: [SECRET], standardWebhooks: false, nowMs });
    const answer = await pool.request({ method: 'POST', path: '/ok/floor', headers, body });
    await answer.body.dump();
  });
  await pool.close();
  await forget();
  return floor;
}
