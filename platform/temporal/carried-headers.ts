import type { Headers } from '@temporalio/common';
import { proxySinks, type Sink, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow';

/**
 * Whose work it is, and which request caused it; sealed if there is a codec
 * (platform/temporal/work-header.ts).
 */
export const WORK = 'work';
/** The span that started it; only while traces are exported. */
export const TRACE = 'trace';

/** Tells the worker, outside the sandbox, that a traced run has ended. */
export interface TraceSinks extends Sinks {
  traces: Sink & { ended(start: Headers, failed: boolean): void };
}

/**
 * Passes the headers of a workflow's start on, unread: to its activities, because local activities don't know
 * their workflow's priority or search attributes, and to the run that it continues as. A replay does not
 * compare headers.
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
