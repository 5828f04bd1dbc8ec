import { fileURLToPath } from 'node:url';
import { SimplePlugin } from '@temporalio/plugin';
import type { BundleOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { RingKey } from '../crypto/key-ring.ts';
import { attemptInterceptors } from './attempts.ts';
import { EncryptionCodec } from './encryption-codec.ts';
import { workHeaders } from './work-header.ts';

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const FAILURE_CONVERTER = pathOf('failure-converter.ts');
const CARRIED_HEADERS = pathOf('../workflows/carried-headers.ts');

export interface PluginOptions {
  /** The keys of CODEC_KEYS; null: payloads aren't encrypted. */
  codecKeys: readonly RingKey[] | null;
  /** Of a process that runs activities; null: it has clients alone. */
  logger: Logger | null;
}

/**
 * What everything that speaks to Temporal has in common: payloads and headers are encrypted, failures carry no foreign
 * text, activities know whose work they do. A connection hands it to its clients and workers.
 */
export class TemporalPlugin extends SimplePlugin {
  constructor({ codecKeys, logger }: PluginOptions) {
    const codec = new EncryptionCodec(codecKeys);
    super({
      name: 'card-issuing',
      dataConverter: { payloadCodecs: [codec], failureConverterPath: FAILURE_CONVERTER },
      clientInterceptors: { workflow: [workHeaders(codec)] },
      ...(logger && { workerInterceptors: { activity: attemptInterceptors(logger, codec) } }),
    });
  }
}

/** The part of it that goes into the workflows' bundle, which is the same whatever is configured. */
export const BUNDLED = {
  workflowInterceptorModules: [CARRIED_HEADERS],
  failureConverterPath: FAILURE_CONVERTER,
} satisfies Partial<BundleOptions>;
