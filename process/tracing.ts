import type { Attributes, Link, Span, SpanContext, SpanKind } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { describeError } from './describe-error.ts';
import { asPartOf } from './work-context.ts';

export interface TracingConfig {
  /** Where spans go: OTLP over HTTP, as JSON. */
  url: string;
  /** Sent with them, such as an API key. */
  headers: Record<string, string>;
  /** The share of the traces that begin here to export. */
  ratio: number;
}

interface SpanOptions {
  name: string;
  kind?: keyof typeof SpanKind;
  /** The span it is below, as W3C's `traceparent`; null: it begins a trace. */
  parent: string | null;
  /** A span of somebody else's trace that led to it. */
  linked?: string | null;
  /** Ids, types and numbers: nothing personal, nothing that somebody else wrote. */
  attributes?: Attributes;
}

/** A span that ended elsewhere, under an id that those below it have been told. */
interface EndedSpan extends SpanOptions {
  spanId: string;
  startedAt: Date;
  failed: boolean;
}

/** Exports spans. Where traces aren't exported there is none, and nothing of it is loaded. */
export interface Tracing {
  /** Runs work in a span; what it starts can be below it (`currentWork().traceparent`). An error marks it, by its name. */
  inSpan<T>(options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  record(span: EndedSpan): void;
  /** Exports what is left. */
  stop(): Promise<void>;
}

const LONGEST_STOP_MS = 3_000;

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
    const above = contextOf(parent);
    const links: Link[] = [contextOf(linked)]
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
        return await asPartOf({ traceparent: traceparentOf(span.spanContext()) }, () => work(span));
      } catch (error) {
        // Never its message, which can quote a row.
        span.setAttribute('error.type', kindOf(error));
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
      await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, LONGEST_STOP_MS).unref())]);
    },
  };
}

/** A failure of Temporal's has a type of ours. */
function kindOf(error: unknown): string {
  const { type } = (error ?? {}) as { type?: unknown };
  return typeof type === 'string' ? type : describeError(error).name;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** @returns null for what is no `traceparent` */
function contextOf(traceparent: string | null | undefined): SpanContext | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The same place in a trace, but below another span. */
export function below(traceparent: string, spanId: string): string {
  const [version, traceId, , flags] = traceparent.split('-');
  return [version, traceId, spanId, flags].join('-');
}
