import { hash } from 'node:crypto';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import type { Headers } from '@temporalio/common';
import type { ActivityInterceptorsFactory, InjectedSinks } from '@temporalio/worker';
import { below, type Tracing } from '../process/tracing.ts';
import { currentWork } from '../process/work-context.ts';
import type { TraceSinks } from './carried-headers.ts';
import type { EncryptionCodec } from './encryption-codec.ts';
import { readTraceHeader } from './work-header.ts';

/** The names that the SDK's own tracing interceptors use in every language. */
const workflowAttributes = (workflowId: string, runId: string) => ({
  temporalWorkflowId: workflowId,
  run_id: runId,
});

/**
 * The id of a run's span, derived from the run's id, so that every process that runs a part of it knows it.
 */
const deriveSpanId = (runId: string): string => hash('sha256', runId).slice(0, 16);

/** A span for each workflow start by a traced request. */
export function tracedStarts(tracing: Tracing): WorkflowClientInterceptor {
  const around = <Out>(
    what: string,
    { workflowType, options }: Start,
    start: () => Promise<Out>,
  ): Promise<Out> => {
    const { traceparent } = currentWork();
    if (traceparent === null) return start();
    const attributes = { temporalWorkflowId: options.workflowId };
    return tracing.inSpan(
      { name: `${what}:${workflowType}`, kind: 'CLIENT', parent: traceparent, attributes },
      start,
    );
  };
  return {
    startWithDetails: (input, next) => around('StartWorkflow', input, () => next(input)),
    signalWithStart: (input, next) => around('SignalWithStartWorkflow', input, () => next(input)),
  };
}

interface Start {
  workflowType: string;
  options: { workflowId: string };
}

/** A span for each attempt of an activity in a traced workflow, as a child of the workflow's span. */
export const tracedAttempts =
  (tracing: Tracing, codec: EncryptionCodec): ActivityInterceptorsFactory =>
  ({ info }) => ({
    inbound: {
      execute(input, next) {
        const traceparent = readTraceHeader(codec, input.headers);
        const { workflowExecution, activityType, activityId, attempt } = info;
        if (traceparent === null || workflowExecution === undefined) return next(input);
        const { workflowId, runId } = workflowExecution;
        return tracing.inSpan(
          {
            name: `RunActivity:${activityType}`,
            parent: below(traceparent, deriveSpanId(runId)),
            attributes: { ...workflowAttributes(workflowId, runId), temporalActivityId: activityId, attempt },
          },
          () => next(input),
        );
      },
    },
  });

/**
 * A span for each run of a traced workflow, recorded when it ends. The sandbox only reports the end: creating
 * spans in there would take 3 to 4 ms of CPU per workflow (docs/decisions/traces.md).
 */
export function runSinks(tracing: Tracing | null, codec: EncryptionCodec): InjectedSinks<TraceSinks> {
  return {
    traces: {
      ended: {
        callDuringReplay: false,
        fn({ workflowType, workflowId, runId, runStartTime }, start: Headers, failed: boolean) {
          const parent = tracing && readTraceHeader(codec, start);
          if (tracing === null || parent === null) return;
          tracing.record({
            name: `RunWorkflow:${workflowType}`,
            parent,
            spanId: deriveSpanId(runId),
            failed,
            startedAt: runStartTime,
            attributes: workflowAttributes(workflowId, runId),
          });
        },
      },
    },
  };
}
