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

/** What a history has of an event. */
interface HistoryEvent {
  eventType: string;
  userMetadata?: { summary?: object };
  markerRecordedEventAttributes?: { markerName: string };
  workflowExecutionCompletedEventAttributes?: { result?: { payloads: { data: string }[] } };
}

/** The events that say what they are for. */
const SUMMARIZED = [
  'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED',
  'EVENT_TYPE_TIMER_STARTED',
];

describe('the committed histories', function () {
  this.timeout(120_000);
  const ends = new Map<string, Error | undefined>();
  before(async () => {
    const histories = NAMES.map((name) => ({ workflowId: name, history: JSON.parse(read(name)) }));
    const options = { workflowBundle: await testWorkflowBundle() };
    for await (const { workflowId, error } of Worker.runReplayHistories(options, histories)) {
      ends.set(workflowId, error);
    }
  });

  it('include every outcome', () => {
    const missing = Object.keys(RECORDINGS).filter((name) => !NAMES.includes(name));
    assert.deepEqual(missing, []);
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
      const [result] = events.at(-1)?.workflowExecutionCompletedEventAttributes?.result?.payloads ?? [];
      assert.equal(typeof JSON.parse(atob(result?.data ?? '')).outcome, 'string');
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
