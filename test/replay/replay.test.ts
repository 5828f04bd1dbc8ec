import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { testWorkflowBundle } from '../support/stack.ts';
import { committedHistories, historyFile, RECORDINGS } from './histories.ts';
import { CARDHOLDER } from './recording.ts';

const NAMES = committedHistories();
const read = (name: string): string => readFileSync(historyFile(name), 'utf8');

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
  'issue-card': { issued: 'active', failed: 'resolved-failed', refused: 'refused' },
  'scan-chain': { not_configured: 'through-everything' },
  'top-up-card': { succeeded: 'succeeded', failed: 'declined', refused: 'refused' },
  'watch-deposit': { confirmed: 'confirmed', expired: 'expired', returned: 'returned', deleted: 'deleted' },
  'withdraw-from-card': { succeeded: 'succeeded', failed: 'declined', refused: 'refused' },
};

const NOT_KEPT = ['sk_test_', 'sk_live_', 'file://', '/node_modules/'];
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
  before(async () => {
    const histories = NAMES.map((name) => ({ workflowId: name, history: JSON.parse(read(name)) }));
    const options = { workflowBundle: await testWorkflowBundle() };
    for await (const { workflowId, error } of Worker.runReplayHistories(options, histories)) {
      ends.set(workflowId, error);
    }
  });

  it('include every end of every workflow', () => {
    for (const [workflow, ends] of Object.entries(ENDS)) {
      for (const [outcome, recording] of Object.entries(ends)) {
        const name = `${workflow}/${recording}`;
        assert.equal(resultOf(JSON.parse(read(name)).events)?.outcome, outcome, name);
      }
    }
  });

  it('include every workflow', () => {
    const source = readFileSync(new URL('../../workflows/index.ts', import.meta.url), 'utf8');
    const workflows = [...source.matchAll(/\{ (.+?) \}/g)].flatMap(([, names = '']) => names.split(', '));
    assert.ok(workflows.length > 0);
    const inDashes = (name: string) => name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
    assert.deepEqual(Object.keys(ENDS).sort(), workflows.map(inDashes).sort());
  });

  it('include one of every recording, and no others than those of an outcome', () => {
    const missing = Object.keys(RECORDINGS).filter((name) => !NAMES.includes(name));
    assert.deepEqual(missing, [], `run: npx node test/replay/record.ts ${missing.join(' ')}`);
    const outcomes = Object.entries(ENDS).flatMap(([workflow, ends]) =>
      Object.values(ends).map((end) => `${workflow}/${end}`),
    );
    assert.deepEqual(NAMES, outcomes.sort());
    assert.deepEqual(Object.keys(RECORDINGS).sort(), outcomes);
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
      const silent = events.filter(
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
      const decoded = [...text.matchAll(/"data":"([^"]+)"/g)].map(([, data]) => atob(data ?? ''));
      const all = [text, ...decoded].join('\n');
      for (const secret of [...Object.values(CARDHOLDER), ...NOT_KEPT])
        assert.ok(!all.includes(secret), `${secret} is in it`);
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
