import type { Headers } from '@temporalio/common';
import { proxySinks, type Sink, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow';

/** Whose work it is, and which request asked for it; sealed where there is a codec (temporal/work-header.ts). */
export const WORK = 'work';
/** In which span it was started; only while traces are exported. */
export const TRACE = 'trace';

/** Tells the worker, outside of the sandbox, that a traced run has ended. */
export interface TraceSinks extends Sinks {
  traces: Sink & { ended(start: Headers, failed: boolean): void };
}

/**
 * Hands on, unread, what the start of a workflow carries: to its activities, since local ones are told nothing of their
 * workflow's priority or search attributes, and to the run that it continues as. Headers are no part of what a replay
 * compares.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  let carried: Headers = {};
  const carry = <Input extends { headers: Headers }>(input: Input): Input => ({
    ...input,
    headers: { ...input.headers, ...carried },
  });
  return {
    inbound: [
      {
        execute(input, next) {
          const { [WORK]: work, [TRACE]: trace } = input.headers;
          carried = { ...(work && { [WORK]: work }), ...(trace && { [TRACE]: trace }) };
          return trace === undefined ? next(input) : traced(() => next(input), carried);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next(carry(input)),
        scheduleLocalActivity: (input, next) => next(carry(input)),
        continueAsNew: (input, next) => next(carry(input)),
      },
    ],
  };
};

async function traced(run: () => Promise<unknown>, start: Headers): Promise<unknown> {
  const { traces } = proxySinks<TraceSinks>();
  try {
    const result = await run();
    traces.ended(start, false);
    return result;
  } catch (error) {
    traces.ended(start, !(error instanceof Error) || error.name !== 'ContinueAsNew');
    throw error;
  }
}
