import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker } from '@temporalio/worker';

/** A worker for only the empty workflow, as a process of its own. */
const [, , address = '', namespace = '', taskQueue = ''] = process.argv;
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address }),
  namespace,
  taskQueue,
  workflowsPath: fileURLToPath(new URL('./workflow.ts', import.meta.url)),
});
await worker.run();
