import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import fc from 'fast-check';
import { z } from 'zod';
import type { Mode } from '../../domain/mode.ts';
import { unrestrictedPartner } from '../support/api/accounts.ts';
import { arbitraryRequest, type FuzzRequest, type Text } from '../support/api/fuzz/arbitrary-requests.ts';
import { type JsonSchema, type Operation, readOperations } from '../support/api/fuzz/document.ts';
import { createCard } from '../support/cards.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';

/** `FUZZ_REQUESTS=100000 TEST_SEED=… npx mocha test/api/openapi-fuzz.test.ts` for more of them, or others. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS || 1_000);
const SEED = fc.readConfigureGlobal().seed ?? 0;
const AT_ONCE = 12;
const BATCH = 500;
/** With the fees of a larger amount, the sum can be too large: 400 (docs/partners/money-fees-and-limits.md). */
const AMOUNT_WITH_FEES = 8e15;

/** Every id that a path or a cursor can have. */
const PREFIXES = readOperations().flatMap(({ parameters }) =>
  parameters.flatMap(({ schema }) => /^\^([a-z]+)_/.exec(schema.pattern ?? '')?.[1] ?? []),
);
const IDS_OF_PARAMETERS = new RegExp(`\\b(${[...new Set(PREFIXES)].join('|')})_[0-9a-z]{26}\\b`, 'g');

interface Answered {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

/**
 * Requests drawn from docs/openapi.json, with nothing else known of the service. What the document allows is never
 * called wrong, what it does not allow always is; every status is declared and every body is of its status' schema;
 * nothing is a 5xx.
 */
describe(`the service, given ${REQUESTS} requests drawn from its OpenAPI document (TEST_SEED=${SEED}),`, function () {
  this.timeout(Math.max(300_000, REQUESTS * 60));

  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  /** Ids that were in answers, by mode. */
  const seen: Record<Mode, string[]> = { test: [], live: [] };
  /** Those of what was last seen active or pending. */
  const alive: Record<Mode, Set<string>> = { test: new Set(), live: new Set() };
  /** The endpoints of replays: chance rarely puts the two together. */
  const endpointOfReplay = new Map<string, string>();
  /** The keys that the requests are sent with: they are not rotated or revoked. */
  const own = new Set<string>();
  const statuses = new Map<string, number>();

  before(async () => {
    stack = await startTestStack({ tron: TEST_TRON });
    receiver = await startReceiver();
    partner = await unrestrictedPartner(stack, 1_000_000_000);
    for (const mode of ['test', 'live'] as const)
      for (const { id } of (await partner.call('GET', '/api-keys', { mode })).json.data) own.add(id);
  });
  after(async () => {
    agent.destroy();
    await stack.stop();
    await receiver.stop();
  });

  /** Chance alone rarely finds a pending authorization on a card that still works. */
  async function authorize(): Promise<void> {
    for (let card = 0; card < 10; card++) {
      const { json } = await createCard(partner, { amount: 500_000 });
      for (let one = 0; one < 8; one++) {
        const body = { amount: 1_000 };
        const made = await partner.call('POST', `/test/cards/${json.id}/authorizations`, { body });
        assert.equal(made.status, 201, made.text);
        alive.test.add(made.json.id);
      }
    }
  }

  it('answers as the document says', async () => {
    const arbitrary = arbitraryRequest(readOperations(), new URL(receiver.url).origin);
    const differences: string[] = [];
    // Some more, where chance has kept it from an answer of some operation.
    for (let done = 0; done < REQUESTS || (missing().length > 0 && done < 10 * REQUESTS); done += BATCH) {
      if (done % REQUESTS === 0) await authorize();
      const drawn = fc.sample(arbitrary, { seed: SEED + done, numRuns: Math.min(BATCH, REQUESTS) });
      const queue = drawn.values();
      const lane = async () => {
        for (const request of queue) {
          const answer = await sendUntilServed(request);
          remember(request.mode, answer.text);
          // The ids of operations are in bodies only if they are listed.
          remember(request.mode, String(answer.headers['operation-id'] ?? ''));
          const difference = differenceOf(request, answer);
          if (difference !== null) differences.push(describeDifference(request, answer, difference));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
      if (differences.length > 20) break;
    }
    assert.equal(differences.join('\n'), '');
    // It has been everywhere: each operation has succeeded, and has been refused.
    assert.deepEqual(missing(), []);
  });

  function missing(): string[] {
    return readOperations().flatMap((operation) => {
      const name = nameOf(operation);
      const of = [...operation.responses.keys()].filter((status) => statuses.has(`${name} ${status}`));
      return [
        ...(of.some((status) => status < 300) ? [] : [`${name} never succeeded`]),
        ...(of.some((status) => status >= 400) ? [] : [`${name} was never refused`]),
      ];
    });
  }

  function pick(mode: Mode, text: Text): string {
    if (typeof text === 'string') return text;
    const shape = new RegExp(text.pattern);
    // Every other time one that can still do something: most others have ended.
    const usable = text.pick % 2 === 0 ? [] : [...alive[mode]].filter((id) => shape.test(id));
    const known = usable.length > 0 ? usable : seen[mode].filter((id) => shape.test(id));
    return known[text.pick % known.length] ?? `${/^\^([a-z]+_)/.exec(text.pattern)?.[1]}${'0'.repeat(26)}`;
  }

  function remember(mode: Mode, text: string): void {
    for (const [, id = '', status] of text.matchAll(
      /"id":"([a-z]+_[0-9a-z]{26})"[^{}]*?"status":"([a-z_]+)"/g,
    )) {
      if (own.has(id)) continue;
      if (status === 'active' || status === 'pending') alive[mode].add(id);
      else alive[mode].delete(id);
    }
    for (const [, id = '', endpointId = ''] of text.matchAll(
      /"id":"(rpl_\w+)","object":"webhook_replay","endpoint_id":"(we_\w+)"/g,
    ))
      endpointOfReplay.set(id, endpointId);
    const known = seen[mode];
    for (const [id] of text.matchAll(IDS_OF_PARAMETERS)) {
      if (!known.includes(id) && !own.has(id)) known.push(id);
    }
    if (known.length > 300) known.splice(0, known.length - 200);
  }

  /** On a busy machine the service may answer that it should be asked again. */
  async function sendUntilServed(request: FuzzRequest): Promise<Answered> {
    for (;;) {
      const answer = await send(request);
      if (answer.status !== 503) return answer;
    }
  }

  function send(request: FuzzRequest): Promise<Answered> {
    const { operation, mode, headers, body } = request;
    const ids = Object.fromEntries(
      Object.entries(request.path).map(([name, text]) => [name, pick(mode, text)]),
    );
    if (typeof request.path.endpointId === 'object')
      ids.endpointId = endpointOfReplay.get(ids.replayId ?? '') ?? ids.endpointId ?? '';
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(ids[name] ?? ''),
    );
    const query = request.query
      .map(([name, text]) => `${encode(name)}=${encode(pick(mode, text))}`)
      .join('&');
    const sent = [
      ['Authorization', `Bearer ${partner.keys[mode]}`],
      ...headers,
      ...(body === null ? [] : [['Content-Length', String(Buffer.byteLength(body))]]),
    ];
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(
        {
          ...{ host: stack.config.host, port: stack.config.port, agent, method: operation.method },
          path: `/v1${path}${query === '' ? '' : `?${query}`}`,
          headers: ['Host', 'localhost', ...sent.flat()],
        },
        (incoming) =>
          textOf(incoming).then(
            (text) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }),
            reject,
          ),
      );
      outgoing.on('error', reject);
      outgoing.end(body ?? undefined);
    });
  }

  /** What the document does not say; null: nothing. */
  function differenceOf(request: FuzzRequest, { status, headers, text }: Answered): string | null {
    const { operation, wrong, expected } = request;
    const name = `${nameOf(operation)} ${status}`;
    statuses.set(name, (statuses.get(name) ?? 0) + 1);
    if (status >= 500) return 'a 5xx';
    if (!/^req_/.test(String(headers['request-id']))) return 'no Request-Id';
    if (!operation.responses.has(status)) return 'a status that is not declared';
    const isOfMode = operation.mode === undefined || operation.mode === request.mode;
    const error = status >= 400 ? JSON.parse(text).error : null;
    const isOwn = status === 400 && isOwn400(request, error);
    if (wrong !== null) {
      // The mode is looked at before anything but the key and the path, and the body before what has the path's id.
      const refused = isOfMode ? [...expected, ...(isOwn ? [400] : [])] : [403];
      if (!refused.includes(status)) return `not ${refused.join(' or ')} for what is wrong`;
    } else if (status === 400 && !isOwn) return '400 for what the document allows';
    else if ([401, 405, 413, 415, 431].includes(status)) return 'refused, though the document allows it';
    else if (status === 403 && isOfMode) return '403 without a reason';
    if (status === 200 && operation.isCsv) {
      const isCsv = headers['content-type'] === 'text/csv; charset=utf-8' && text.endsWith('\r\n');
      return isCsv ? null : 'not CSV';
    }
    const schema = operation.responses.get(status);
    if (schema == null) return text === '' ? null : 'a body where none is declared';
    if (headers['content-type'] !== 'application/json; charset=utf-8')
      return 'another Content-Type than JSON';
    const parsed = validatorOf(schema).safeParse(JSON.parse(text));
    return parsed.success ? null : `not of its schema: ${z.prettifyError(parsed.error)}`;
  }
});

/**
 * What a schema cannot say: a cursor has to be there; amount and fees, and old and new metadata, have to fit together; no
 * more can be taken from an authorization than is left, or given back of a purchase; and a card has no spending limit twice.
 */
function isOwn400({ body, operation }: FuzzRequest, error: { param?: string }): boolean {
  if (error.param === 'starting_after') return true;
  // It has to be in the future.
  if (error.param === 'expires_at') return true;
  if (error.param === 'metadata' && operation.method === 'PATCH') return true;
  if (error.param?.startsWith('spending_controls.spending_limits.')) return true;
  // It has to be a purchase on the card.
  if (error.param === 'transaction_id') return true;
  if (error.param !== 'amount') return false;
  if (JSON.parse(body ?? '{}').transaction_id !== undefined) return true;
  if (/^\/test\/authorizations\/\{authorizationId\}\/(capture|reverse)$/.test(operation.path)) return true;
  return JSON.parse(body ?? '{}').amount > AMOUNT_WITH_FEES;
}

const validators = new Map<JsonSchema, z.ZodType>();

function validatorOf(schema: JsonSchema): z.ZodType {
  const known = validators.get(schema) ?? z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  validators.set(schema, known);
  return known;
}

const encode = (text: string) => encodeURIComponent(text.toWellFormed());

const nameOf = ({ method, path }: Operation) => `${method} ${path}`;

function describeDifference(request: FuzzRequest, { status, text }: Answered, difference: string): string {
  const { operation, wrong, mode, path, query, headers, body } = request;
  const asked = JSON.stringify({ mode, path, query, headers, body: body?.slice(0, 500) });
  return `${nameOf(operation)}: ${difference} (wrong: ${wrong}) ${status} ${text.slice(0, 500)} ${asked}`;
}
