import type { Attributes, Link, Span, SpanContext, SpanKind } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { describeError } from './describe-error.ts';
import { asPartOf } from './work-context.ts';

export interface TracingConfig {
  /** Where spans go: OTLP over HTTP, as JSON. */
  url: string;
  /** Headers to send with them, such as an API key. */
  headers: Record<string, string>;
  /** The share of new traces to export. */
  ratio: number;
}

interface SpanOptions {
  name: string;
  kind?: keyof typeof SpanKind;
  /** The parent span, as W3C's `traceparent`; null to start a new trace. */
  parent: string | null;
  /** A span of the caller's own trace, to link. */
  linked?: string | null;
  /** Ids, types and numbers; nothing personal, and no foreign text. */
  attributes?: Attributes;
}

/** A span that ended elsewhere, with the id that its children already use. */
interface EndedSpan extends SpanOptions {
  spanId: string;
  startedAt: Date;
  failed: boolean;
}

/** Exports spans. If traces aren't exported, none is created, and OpenTelemetry is not loaded. */
export interface Tracing {
  /**
   * Runs work in a span, which can be the parent of what it starts (`currentWork().traceparent`). An error is
   * recorded by name.
   */
  inSpan<T>(options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  record(span: EndedSpan): void;
  /** Exports the remaining spans. */
  stop(): Promise<void>;
}

const MAX_STOP_MS = 3_000;

export async function startTracing(
  service: 'card-issuing-api' | 'card-issuing-worker',
  config: TracingConfig | null,
  logger: Logger,
): Promise<Tracing | null> {
  if (config === null) return null;
  const [{ ROOT_CONTEXT, SpanKind, SpanStatusCode, trace }, sdk, { OTLPTraceExporter }, resources] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  const { url, headers, ratio } = config;
  const random = new sdk.RandomIdGenerator();
  let nextSpanId: string | undefined;
  const provider = new sdk.TracerProvider({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ 'service.name': service }))
      // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) }),
    idGenerator: {
      generateTraceId: () => random.generateTraceId(),
      generateSpanId: () => nextSpanId ?? random.generateSpanId(),
    },
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url, headers }),
        scheduledDelayMillis: 1_000,
      }),
    ],
  });
  const tracer = provider.getTracer('card-issuing');

  function start(
    { name, kind = 'INTERNAL', parent, linked, attributes = {} }: SpanOptions,
    startTime?: Date,
  ): Span {
    const above = parseTraceparent(parent);
    const links: Link[] = [parseTraceparent(linked)]
      .filter((context) => context !== null)
      .map((context) => ({ context }));
    return tracer.startSpan(
      name,
      { kind: SpanKind[kind], attributes, links, ...(startTime && { startTime }) },
      above === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, above),
    );
  }

  return {
    async inSpan(options, work) {
      const span = start(options);
      try {
        return await asPartOf({ traceparent: formatTraceparent(span.spanContext()) }, () => work(span));
      } catch (error) {
        // Never its message, which can quote a row.
        span.setAttribute('error.type', errorKind(error));
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
    record(ended) {
      // Starting a span is synchronous: no other takes the id.
      nextSpanId = ended.spanId;
      const span = start(ended, ended.startedAt);
      nextSpanId = undefined;
      if (ended.failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
    async stop() {
      const stopped = provider.shutdown().catch((error: unknown) => {
        logger.warn({ error: describeError(error) }, 'the last spans could not be exported');
      });
      await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, MAX_STOP_MS).unref())]);
    },
  };
}

/** The kind of an error: for a Temporal failure, the type that we gave it. */
function errorKind(error: unknown): string {
  const { type } = (error ?? {}) as { type?: unknown };
  return typeof type === 'string' ? type : describeError(error).name;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** @returns null if it is not a valid `traceparent` */
function parseTraceparent(traceparent: string | null | undefined): SpanContext | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The same trace, with another span as the parent. */
export function below(traceparent: string, spanId: string): string {
  const [version, traceId, , flags] = traceparent.split('-');
  return [version, traceId, spanId, flags].join('-');
}
