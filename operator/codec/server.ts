import { createServer } from 'node:http';
import Router from '@koa/router';
import type { Payload } from '@temporalio/common';
import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';
import getRawBody from 'raw-body';
import { z } from 'zod';
import type { CodecConfig } from '../../platform/config/codec.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type ListeningServer, listenOnPort } from '../../platform/process/listen.ts';
import { EncryptionCodec } from '../../platform/temporal/encryption-codec.ts';
import { createCodecAuthenticate, type State } from './authenticate.ts';

/** More than Temporal's UI sends at once. */
const LARGEST_BODY_BYTES = 8 * 1024 * 1024;

const Bytes = z.base64();
const Body = z.object({
  // Temporal's command line leaves it out where there is none, as for a query without an input.
  payloads: z
    .array(z.object({ metadata: z.record(z.string(), Bytes).optional(), data: Bytes.optional() }))
    .default([]),
});
type JsonPayload = z.infer<typeof Body>['payloads'][number];

/**
 * Decrypts payloads for Temporal's UI and command line, and encrypts what they send: POST /decode and
 * /encode, in Temporal's own protocol. It has the keys but no access to data: neither to the database nor to
 * Temporal.
 */
export async function startCodec(config: CodecConfig, logger: Logger): Promise<ListeningServer> {
  const codec = new EncryptionCodec(config.keys);
  const answer = (work: (payloads: Payload[]) => Payload[]) => async (ctx: Context) => {
    const payloads = await readPayloads(ctx);
    if (payloads === 'too_large')
      return refuse(ctx, 413, 'the body is larger than 8 MiB: send fewer payloads');
    if (payloads === null) return refuse(ctx, 400, 'the body is not {"payloads": […]} as Temporal sends it');
    ctx.state.payloads = payloads.length;
    ctx.body = { payloads: work(payloads.map(fromJson)).map(toJson) };
  };
  /**
   * Leaves a payload that can't be decrypted as it is, so that the rest can be read: its key may have been
   * removed on purpose. The log gets one line, however many there are.
   */
  const open = (payloads: Payload[]): Payload[] => {
    const failures: unknown[] = [];
    const opened = payloads.map((payload) => {
      try {
        return codec.open(payload);
      } catch (error) {
        failures.push(error);
        return payload;
      }
    });
    if (failures.length > 0)
      logger.warn(
        { payloads: failures.length, error: describeError(failures[0]) },
        'could not decrypt every payload; this is the first error',
      );
    return opened;
  };

  const router = new Router<State>();
  const guard = [createCodecAuthenticate(config), onlyFor(config.namespace)] as const;
  // A UI without a login can send a token only as part of the endpoint's address.
  for (const prefix of ['', '/:token']) {
    router.post(`${prefix}/decode`, ...guard, answer(open));
    router.post(
      `${prefix}/encode`,
      ...guard,
      answer((payloads) => payloads.map((payload) => codec.seal(payload))),
    );
  }
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });

  const app = new Koa<State>();
  app.on('error', (error) => logger.warn({ error: describeError(error) }, 'could not send a response'));
  app.use(logged(logger));
  app.use(forOrigins(config.allowedOrigins));
  app.use(router.routes());
  return listenOnPort(createServer({ requestTimeout: 30_000 }, app.callback()), config, 'CODEC_PORT');
}

/**
 * Logs one line for each request, with its sender and number of payloads, but not the path, which can contain
 * a token.
 */
function logged(logger: Logger): Middleware<State> {
  return async (ctx, next) => {
    await next();
    const { status, method } = ctx;
    if (ctx.path === '/healthz' || method === 'OPTIONS') return;
    const { by = null, payloads = 0 } = ctx.state;
    logger.info(
      { what: ctx.path.split('/').at(-1) === 'encode' ? 'encode' : 'decode', status, by, payloads },
      'request',
    );
  };
}

/** Lets pages of Temporal's UI, and no others, read responses in a browser. */
function forOrigins(allowed: readonly string[]): Middleware {
  return async (ctx, next) => {
    const origin = ctx.get('Origin');
    ctx.vary('Origin');
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    if (allowed.includes(origin)) {
      ctx.set({
        'Access-Control-Allow-Origin': origin,
        'Access-Control-Allow-Credentials': 'true',
        'Access-Control-Allow-Headers': 'Authorization, Authorization-Extras, Content-Type, X-Namespace',
        'Access-Control-Allow-Methods': 'POST',
        'Access-Control-Max-Age': '600',
      });
    }
    if (ctx.method === 'OPTIONS') ctx.status = 204;
    else await next();
  };
}

/** Refuses requests for other namespaces than the one the keys belong to. */
function onlyFor(namespace: string): Middleware {
  return async (ctx, next) => {
    const asked = ctx.get('X-Namespace');
    if (asked === '' || asked === namespace) return next();
    refuse(ctx, 403, 'this endpoint only has the keys of another namespace');
  };
}

/** @returns null if the body is anything else */
async function readPayloads({ req }: Context): Promise<JsonPayload[] | 'too_large' | null> {
  try {
    const length = req.headers['content-length'] ?? null;
    const text = await getRawBody(req, { limit: LARGEST_BODY_BYTES, length, encoding: 'utf8' });
    return Body.parse(JSON.parse(text)).payloads;
  } catch (error) {
    if ((error as { type?: unknown }).type !== 'entity.too.large') return null;
    // The rest is thrown away, so that the client, which is still sending, gets the answer.
    req.resume();
    return 'too_large';
  }
}

const fromJson = ({ metadata = {}, data }: JsonPayload): Payload => ({
  metadata: Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value, 'base64')]),
  ),
  data: data === undefined ? undefined : Buffer.from(data, 'base64'),
});

const toJson = ({ metadata, data }: Payload): JsonPayload => ({
  metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)])),
  data: data == null ? undefined : base64(data),
});

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

function refuse(ctx: Context, status: number, message: string): void {
  ctx.status = status;
  ctx.body = { error: message };
}
