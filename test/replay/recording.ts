import type { WorkflowHandle } from '@temporalio/client';
import type { TestStack } from '../support/stack.ts';

/** Brings one outcome about. @returns its workflow, which ends without anything more being done */
export type Recording = (stack: TestStack) => Promise<WorkflowHandle>;
