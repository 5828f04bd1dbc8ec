import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { bundleWorkflows } from '../../platform/temporal/bundle-workflows.ts';
import { testWorkflowBundle } from '../support/stack.ts';
import { committedHistories, historyFile, RECORDINGS } from './histories.ts';
import { CARDHOLDER } from './recording.ts';
import { uncoveredBy } from './uncovered.ts';

const NAMES = committedHistories();
const read = (name: string): string => readFileSync(historyFile(name), 'utf8');

/** The parts of a history's event that the tests read. */
interface HistoryEvent {
  eventTime: string;
  eventType: string;
  userMetadata?: { summary?: object };
  markerRecordedEventAttributes?: { markerName: string };
  workflowExecutionCompletedEventAttributes?: { result?: { payloads: { data: string }[] } };
}

function resultOf(events: HistoryEvent[]): { outcome?: unknown } {
  const [result] = events.at(-1)?.workflowExecutionCompletedEventAttributes?.result?.payloads ?? [];
  return JSON.parse(atob(result?.data ?? ''));
}

type Workflows = typeof import('../../workflows/index.ts');
type Outcome<Name extends keyof Workflows> = Awaited<ReturnType<Workflows[Name]>>['outcome'];

/** The recording of each way a workflow can end. TypeScript reports a new outcome that is missing here. */
const ENDS: {
  'change-card-status': Record<Outcome<'changeCardStatus'>, string>;
  'deliver-webhook': Record<Outcome<'deliverWebhook'>, string>;
  'issue-card': Record<Exclude<Outcome<'issueCard'>, 'succeeded'>, string>;
  'scan-chain': Record<Outcome<'scanChain'>, string>;
  'top-up-card': Record<Exclude<Outcome<'topUpCard'>, 'issued'>, string>;
  'watch-deposit': Record<Outcome<'watchDeposit'>, string>;
  'withdraw-from-card': Record<Exclude<Outcome<'withdrawFromCard'>, 'issued'>, string>;
} = {
  'change-card-status': {
    applied: 'frozen',
    refused: 'refused',
    refused_by_network: 'refused-by-network',
    forgotten: 'forgotten',
  },
  'deliver-webhook': { delivered: 'delivered', parked: 'gone', given_up: 'given-up', deleted: 'deleted' },
  'issue-card': { issued: 'active', failed: 'declined', refused: 'refused' },
  'scan-chain': { not_configured: 'through-everything' },
  'top-up-card': { succeeded: 'succeeded', failed: 'declined', refused: 'refused' },
  'watch-deposit': { confirmed: 'confirmed', expired: 'expired', returned: 'returned', deleted: 'deleted' },
  'withdraw-from-card': { succeeded: 'succeeded', failed: 'declined', refused: 'refused' },
};

const LONG = 'after a thousand events: tests of its workflow let a history grow that long';
const STARTER = 'makes the id of a workflow for who starts it';
const WORDS = 'chooses words of the details, which are no part of a history';
const TRACED = 'while traces are exported; it only tells the worker when a run ended';

/** The lines of workflows/ where code begins that no committed history goes through, and why none does. */
const NOT_REPLAYED: Record<string, string> = {
  'carried-headers.ts: async function traced(run: () => Promise<unknown>, start: Headers): Promise<unknown> {':
    TRACED,
  'carried-headers.ts: return trace === undefined ? next(input) : traced(() => next(input), carried);':
    TRACED,
  'carried-headers.ts: continueAsNew: (input, next) => next(carry(input)),': LONG,
  'scan-chain.ts: return continueAsNew<typeof scanChain>({ network });': LONG,
  'watch-deposit.ts: await continueAsNew<typeof watchDeposit>({': LONG,
  "scan-chain.ts: return { state: 'failed', why: 'the worker has stopped sending heartbeats', timedOut: true };":
    'takes a worker that freezes: test/crash/full/deposits-frozen.test.ts has one',
  'scan-chain.ts: if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;':
    'whoever cancels the scan ends it, and nothing follows',
  'messages.ts: export const changeCardStatusWorkflowId = (cardId: string, claimId: string): string =>':
    STARTER,
  'messages.ts: export const deliverWebhookWorkflowId = (eventId: string, endpointId: string): string =>':
    STARTER,
  'messages.ts: export const issueCardWorkflowId = (cardId: string): string => `issue-card/${cardId}`;':
    STARTER,
  'messages.ts: export const scanChainWorkflowId = (network: ChainName, taskQueuePrefix: string): string =>':
    STARTER,
  'messages.ts: export const transferWorkflowId = (topupId: string): string => `top-up/${topupId}`;': STARTER,
  'messages.ts: export const watchDepositWorkflowId = (depositId: string): string => `deposit/${depositId}`;':
    STARTER,
  'messages.ts: export const transferWorkflowId = (withdrawalId: string): string => `withdraw/${withdrawalId}`;':
    STARTER,
  'network-operation.ts: setHandler(networkOperationState, () => ({ ...asked, deadline: iso(deadline), overdue }));':
    'answers a query, which leaves no trace in a history',
  "watch-deposit.ts: case 'needs_review':": WORDS,
  'watch-deposit.ts: if (count > payments.length) lines.push(`- and ${count - payments.length} more`);':
    WORDS,
};

/** The events that have a summary of their purpose. */
const SUMMARIZED = [
  'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED',
  'EVENT_TYPE_TIMER_STARTED',
];

/** What time it is at a history's event of this index. */
const CLOCKS: Record<string, (startMs: number, index: number) => number> = {
  'stands still': (startMs) => startMs,
  'runs an hour an event': (startMs, index) => startMs + index * 3_600_000,
};

describe('the committed histories', () => {
  const ends = new Map<string, Error | undefined>();
  let uncovered: string[];
  before(async () => {
    const histories = NAMES.map((name) => ({ workflowId: name, history: JSON.parse(read(name)) }));
    // With its source map, which the bundle of the run lacks.
    const workflowBundle = await bundleWorkflows(SILENT);
    // In debug mode workflows run in this thread, so their code coverage can be measured.
    const options = { workflowBundle, debugMode: true };
    uncovered = await uncoveredBy(workflowBundle, async () => {
      for await (const { workflowId, error } of Worker.runReplayHistories(options, histories)) {
        ends.set(workflowId, error);
      }
    });
  });

  it('include one of every recording', () => {
    const missing = Object.keys(RECORDINGS).filter((name) => !NAMES.includes(name));
    assert.deepEqual(missing, [], `run: npx node test/replay/record.ts ${missing.join(' ')}`);
  });

  it('include every end of every workflow', () => {
    for (const [workflow, ends] of Object.entries(ENDS)) {
      for (const [outcome, recording] of Object.entries(ends)) {
        const name = `${workflow}/${recording}`;
        assert.equal(resultOf(JSON.parse(read(name)).events)?.outcome, outcome, name);
      }
    }
  });

  it('go through every branch of every workflow', () => {
    const excused = Object.keys(NOT_REPLAYED);
    assert.deepEqual(
      uncovered.filter((line) => !excused.includes(line)),
      [],
      'no committed history goes through these lines: add a recording to test/replay/<workflow>.ts, and run ' +
        'npx node test/replay/record.ts <workflow>/<its name>',
    );
    assert.deepEqual(
      excused.filter((line) => !uncovered.includes(line)),
      [],
      'a history goes through these lines, or they are gone: take them from NOT_REPLAYED',
    );
  });

  it('include every workflow', () => {
    const source = readFileSync(new URL('../../workflows/index.ts', import.meta.url), 'utf8');
    const workflows = [...source.matchAll(/from '\.\/(.+)\.ts'/g)].map(([, file]) => file ?? '');
    assert.ok(workflows.length > 0);
    const recorded = new Set(Object.keys(RECORDINGS).map((name) => name.split('/')[0]));
    assert.deepEqual([...recorded].sort(), workflows.sort());
  });

  it('include no others than those of an outcome, as this release and earlier ones reach it', () => {
    const outcomes = Object.keys(RECORDINGS);
    const strays = NAMES.filter(
      (name) => !outcomes.some((outcome) => name === outcome || name.startsWith(`${outcome}-`)),
    );
    assert.deepEqual(strays, []);
  });

  for (const name of NAMES) {
    it(`replay ${name} to its end`, () => {
      const { events } = JSON.parse(read(name));
      assert.equal(events.at(-1).eventType, 'EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED');
      assert.ok(ends.has(name));
      assert.equal(ends.get(name), undefined);
    });

    it(`show ${name} readably in the Temporal UI`, () => {
      const { events } = JSON.parse(read(name)) as { events: HistoryEvent[] };
      // A run that continues another one can't be given a summary; its details have a title instead.
      const [, ...later] = events;
      const silent = (name === 'watch-deposit/continued' ? later : events).filter(
        ({ eventType, userMetadata, markerRecordedEventAttributes: marker }) =>
          userMetadata?.summary === undefined &&
          (SUMMARIZED.includes(eventType) || marker?.markerName === 'core_local_activity'),
      );
      assert.deepEqual(
        silent.map(({ eventType }) => eventType),
        [],
      );
      assert.equal(typeof resultOf(events).outcome, 'string');
    });

    it(`contain nothing about the cardholder or the machine in ${name}`, () => {
      const text = read(name);
      const decoded = [...text.matchAll(/"data": "([^"]+)"/g)].map(([, data]) => atob(data ?? ''));
      const all = [text, ...decoded].join('\n');
      for (const secret of [
        ...Object.values(CARDHOLDER),
        'sk_test_',
        'sk_live_',
        'file://',
        '/node_modules/',
      ]) {
        assert.ok(!all.includes(secret), `${secret} is in it`);
      }
      assert.doesNotMatch(all, /\d+@\w/);
    });
  }

  // Local activities that take several workflow tasks are replayed as one, at another time than a worker saw that was killed.
  for (const [how, timeOf] of Object.entries(CLOCKS)) {
    it(`replay if the clock ${how}, because only recorded facts decide`, async () => {
      const histories = NAMES.map((name) => {
        const { events } = JSON.parse(read(name)) as { events: HistoryEvent[] };
        const startMs = Date.parse(events[0]?.eventTime ?? '');
        for (const [index, event] of events.entries())
          event.eventTime = new Date(timeOf(startMs, index)).toISOString();
        return { workflowId: name, history: { events } };
      });
      const refused: string[] = [];
      const options = { workflowBundle: await testWorkflowBundle() };
      for await (const { workflowId, error } of Worker.runReplayHistories(options, histories)) {
        if (error !== undefined) refused.push(`${workflowId}: ${error.message}`);
      }
      assert.deepEqual(refused, []);
    });
  }

  it('do not replay if the workflow has one more timer', async () => {
    const workflowsPath = fileURLToPath(new URL('./changed-workflows.ts', import.meta.url));
    const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger: SILENT });
    await assert.rejects(
      Worker.runReplayHistory({ workflowBundle }, JSON.parse(read('issue-card/active'))),
      DeterminismViolationError,
    );
  });
});

const SILENT = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
