import { fileURLToPath } from 'node:url';
import { SimplePlugin } from '@temporalio/plugin';
import type { BundleOptions, InjectedSinks, WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { RingKey } from '../crypto/key-ring.ts';
import type { Tracing } from '../process/tracing.ts';
import type { TraceSinks } from '../workflows/carried-headers.ts';
import { attemptInterceptors } from './attempts.ts';
import { EncryptionCodec } from './encryption-codec.ts';
import { runSinks, tracedAttempts, tracedStarts } from './traces.ts';
import { workHeaders } from './work-header.ts';

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const FAILURE_CONVERTER = pathOf('failure-converter.ts');
const CARRIED_HEADERS = pathOf('../workflows/carried-headers.ts');

export interface PluginOptions {
  /** The keys of CODEC_KEYS; null: payloads aren't encrypted. */
  codecKeys: readonly RingKey[] | null;
  /** Of a process that runs activities; null: it has clients alone. */
  logger: Logger | null;
  /** Null: no traces are exported. */
  tracing?: Tracing | null;
}

/**
 * What everything that speaks to Temporal has in common: payloads and headers are encrypted, failures carry no foreign
 * text, activities know whose work they do, and what belongs to a traced request has its spans. A connection hands it to its clients and workers.
 */
export class TemporalPlugin extends SimplePlugin {
  readonly #sinks: InjectedSinks<TraceSinks>;

  constructor({ codecKeys, logger, tracing = null }: PluginOptions) {
    const codec = new EncryptionCodec(codecKeys);
    // The first is the outermost: what a span is told of a failure is safe, and a start's header names the start's span.
    const activity = [
      ...(tracing === null ? [] : [tracedAttempts(tracing, codec)]),
      ...(logger === null ? [] : attemptInterceptors(logger, codec)),
    ];
    super({
      name: 'card-issuing',
      dataConverter: { payloadCodecs: [codec], failureConverterPath: FAILURE_CONVERTER },
      clientInterceptors: {
        workflow: [...(tracing === null ? [] : [tracedStarts(tracing)]), workHeaders(codec)],
      },
      workerInterceptors: { activity },
    });
    this.#sinks = runSinks(tracing, codec);
  }

  override configureWorker(options: WorkerOptions): WorkerOptions {
    return super.configureWorker({ ...options, sinks: { ...options.sinks, ...this.#sinks } });
  }
}

/** The part of it that goes into the workflows' bundle, which is the same whatever is configured. */
export const BUNDLED = {
  workflowInterceptorModules: [CARRIED_HEADERS],
  failureConverterPath: FAILURE_CONVERTER,
} satisfies Partial<BundleOptions>;
