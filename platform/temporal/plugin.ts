import { fileURLToPath } from 'node:url';
import { SimplePlugin } from '@temporalio/plugin';
import type {
  ActivityInterceptorsFactory,
  BundleOptions,
  InjectedSinks,
  WorkerOptions,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import type { RingKey } from '../crypto/key-ring.ts';
import type { Tracing } from '../process/tracing.ts';
import { attemptInterceptors } from './attempts.ts';
import type { TraceSinks } from './carried-headers.ts';
import { EncryptionCodec } from './encryption-codec.ts';
import { runSinks, tracedAttempts, tracedStarts } from './traces.ts';
import { workHeaders } from './work-header.ts';

const filePath = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const FAILURE_CONVERTER = filePath('failure-converter.ts');
const CARRIED_HEADERS = filePath('./carried-headers.ts');

interface PluginOptions {
  /** The keys of CODEC_KEYS; null if payloads aren't encrypted. */
  codecKeys: readonly RingKey[] | null;
  /** The logger of a process that runs activities; null if it only has clients. */
  logger: Logger | null;
  /** Null if no traces are exported. */
  tracing?: Tracing | null;
}

/**
 * Everything that clients and workers have in common: payloads and headers are encrypted, failures contain no
 * foreign text, activities know whose work they do, and traced requests have their spans. A connection passes
 * it to its clients and workers.
 */
export class TemporalPlugin extends SimplePlugin {
  readonly #sinks: InjectedSinks<TraceSinks>;

  constructor({ codecKeys, logger, tracing = null }: PluginOptions) {
    const codec = new EncryptionCodec(codecKeys);
    // The first is the outermost, so that spans only see safe failures, and a start's header names the
    // start's span.
    const activity: ActivityInterceptorsFactory[] = [];
    if (tracing !== null) activity.push(tracedAttempts(tracing, codec));
    if (logger !== null) activity.push(...attemptInterceptors(logger, codec));
    const workflow = [workHeaders(codec)];
    if (tracing !== null) workflow.unshift(tracedStarts(tracing));
    super({
      name: 'card-issuing',
      dataConverter: { payloadCodecs: [codec], failureConverterPath: FAILURE_CONVERTER },
      clientInterceptors: { workflow },
      workerInterceptors: { activity },
    });
    this.#sinks = runSinks(tracing, codec);
  }

  override configureWorker(options: WorkerOptions): WorkerOptions {
    return super.configureWorker({ ...options, sinks: { ...options.sinks, ...this.#sinks } });
  }
}

/** The part that goes into the workflow bundle, which does not depend on the configuration. */
export const BUNDLED = {
  workflowInterceptorModules: [CARRIED_HEADERS],
  failureConverterPath: FAILURE_CONVERTER,
} satisfies Partial<BundleOptions>;
