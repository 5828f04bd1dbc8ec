import type { WorkflowClientInterceptor, WorkflowStartInput } from '@temporalio/client';
import {
  defaultPayloadConverter,
  type Headers,
  type Payload,
  TypedSearchAttributes,
} from '@temporalio/common';
import type { Mode } from '../../domain/mode.ts';
import { currentWork } from '../process/work-context.ts';
import { TRACE, WORK } from './carried-headers.ts';
import type { EncryptionCodec } from './encryption-codec.ts';
import { modeAttribute, partnerIdAttribute } from './search-attributes.ts';

/** What the start of a workflow tells its activities about their work. */
interface CarriedWork {
  /** The account whose share of resources they use; undefined for the service itself. */
  account: { partnerId: string; mode: Mode } | undefined;
  /** The id of the request that caused them. */
  requestId: string | null;
}

/** Adds the headers to every start. The SDK does not apply the codec to headers, so they are sealed here. */
export function workHeaders(codec: EncryptionCodec): WorkflowClientInterceptor {
  const seal = (value: unknown): Payload => codec.seal(defaultPayloadConverter.toPayload(value));
  const withHeaders = <Input extends Pick<WorkflowStartInput, 'headers' | 'options'>>(
    input: Input,
  ): Input => {
    const { requestId, traceparent } = currentWork();
    const given = input.options.typedSearchAttributes ?? [];
    const attributes = Array.isArray(given) ? new TypedSearchAttributes(given) : given;
    const work = {
      partnerId: attributes.get(partnerIdAttribute),
      mode: attributes.get(modeAttribute),
      requestId: requestId ?? undefined,
    };
    const headers: Headers = { ...input.headers, [WORK]: seal(work) };
    if (traceparent) headers[TRACE] = seal(traceparent);
    return { ...input, headers };
  };
  return {
    startWithDetails: (input, next) => next(withHeaders(input)),
    signalWithStart: (input, next) => next(withHeaders(input)),
  };
}

/** Reads the header that the activity's workflow was started with. A workflow started by hand has none. */
export function readWorkHeader(codec: EncryptionCodec, headers: Headers): CarriedWork {
  const { partnerId, mode, requestId } = read<Partial<Record<string, unknown>>>(codec, headers[WORK]) ?? {};
  const isAccount = typeof partnerId === 'string' && (mode === 'test' || mode === 'live');
  return {
    account: isAccount ? { partnerId, mode } : undefined,
    requestId: typeof requestId === 'string' ? requestId : null,
  };
}

/** @returns null if the workflow was started while no traces were exported */
export function readTraceHeader(codec: EncryptionCodec, headers: Headers): string | null {
  return read<string>(codec, headers[TRACE]) ?? null;
}

function read<T>(codec: EncryptionCodec, payload: Payload | undefined): T | undefined {
  return payload && defaultPayloadConverter.fromPayload<T>(codec.open(payload));
}
