import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Client, Connection, type HistoryAndWorkflowId, isGrpcServiceError } from '@temporalio/client';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { Runtime, Worker } from '@temporalio/worker';
import { readCodecKeys, readTemporalConfig } from '../platform/config/operator.ts';
import { runOnce, StartRefused } from '../platform/process/run-process.ts';
import { bundleWorkflows } from '../platform/temporal/bundle-workflows.ts';
import { TemporalPlugin } from '../platform/temporal/plugin.ts';

const USAGE = `npm run replay -- FILE|WORKFLOW-ID … [--query Q]

Replays histories with the workflow code of this release, and says whether a running workflow with such a history could
go on with it. Nothing is changed anywhere. Exit code 0: all of them; 1: not all; 2: wrong usage.

  FILE          a history as JSON: the Temporal UI's download, or
                temporal workflow show --workflow-id ID --output json > history.json
  WORKFLOW-ID   fetched from the Temporal server, such as issue-card/card_…
  --query Q     also every workflow that the query finds there, such as 'ExecutionStatus = "Running"'
`;

const HINT = `
What does not replay would stop there, and keep what it holds, until it gets code that fits. So before this release
replaces the one that runs now, do one of these:
  - put the change behind \`patched\`, so that workflows that are running keep to the old way;
  - if such workflows are pinned to their version, keep workers of that version until they have ended.
docs/upgrading.md, "Upgrading", shows both. If no such workflow is running, nothing has to be done.
`;

const GRPC_NOT_FOUND = 5;
const SILENT = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };

await runOnce('replay', async () => {
  const { names, query } = readArguments();
  // The result has everything that matters, so the runtime's own logs are off.
  Runtime.install({ logger: SILENT, telemetryOptions: { logging: { forward: {} } }, shutdownSignals: [] });
  const { WORKFLOW_BUNDLE: codePath } = process.env;
  const workflowBundle = codePath ? { codePath } : await bundleWorkflows(SILENT);
  const failed = await replayAll(workflowBundle, namedHistories(names, query));
  if (!failed) return;
  console.log(HINT);
  process.exit(1);
});

function readArguments(): { names: string[]; query: string | undefined } {
  try {
    const options = { query: { type: 'string' }, help: { type: 'boolean' } } as const;
    const { values, positionals: names } = parseArgs({ options, allowPositionals: true });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    if (names.length > 0 || values.query !== undefined) return { names, query: values.query };
    console.error(USAGE);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
  }
  process.exit(2);
}

/** @returns whether one did not replay */
async function replayAll(
  workflowBundle: { code: string } | { codePath: string },
  histories: AsyncIterable<HistoryAndWorkflowId>,
): Promise<boolean> {
  const plugins = [new TemporalPlugin({ codecKeys: readCodecKeys(), logger: null })];
  const options = { workflowBundle, plugins };
  let replayed = 0;
  let failed = 0;
  for await (const { workflowId, error } of Worker.runReplayHistories(options, histories)) {
    if (error === undefined) {
      replayed += 1;
      console.log(`replays          ${workflowId}`);
    } else {
      failed += 1;
      // The SDK wraps the reason in other text.
      const [why = error.message] = /\[TMPRL\d+\] [^"]*/.exec(error.message) ?? [];
      console.log(`DOES NOT REPLAY  ${workflowId}\n                 ${why}`);
    }
  }
  console.log(`\n${replayed + failed} replayed, ${failed} of them failed.`);
  return failed > 0;
}

async function* namedHistories(
  names: readonly string[],
  query: string | undefined,
): AsyncGenerator<HistoryAndWorkflowId> {
  const ids = names.filter((name) => !existsSync(name));
  for (const file of names.filter((name) => existsSync(name))) {
    yield { workflowId: file, history: readHistory(file) };
  }
  if (ids.length === 0 && query === undefined) return;
  const temporal = readTemporalConfig();
  if (temporal === null)
    throw new StartRefused(`${ids[0] ?? '--query'}: is no file; to ask the server, set TEMPORAL_ADDRESS`);
  const connection = await Connection.connect(temporal.connectionOptions);
  const { workflow: client } = new Client({ connection, namespace: temporal.namespace ?? 'default' });
  for (const workflowId of ids) {
    const history = await client
      .getHandle(workflowId)
      .fetchHistory()
      .catch((error: unknown) => {
        if (!isGrpcServiceError(error) || error.code !== GRPC_NOT_FOUND) throw error;
        throw new StartRefused(`${workflowId}: Temporal has no such workflow`);
      });
    yield { workflowId, history };
  }
  if (query !== undefined) yield* client.list({ query }).intoHistories();
  await connection.close();
}

/** @throws StartRefused if the file is something else */
function readHistory(file: string): HistoryAndWorkflowId['history'] {
  try {
    const history = JSON.parse(readFileSync(file, 'utf8'));
    if (Array.isArray(history.events) && history.events.length > 0) return historyFromJSON(history);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new StartRefused(`${file}: is not the history of a workflow as JSON`);
}
