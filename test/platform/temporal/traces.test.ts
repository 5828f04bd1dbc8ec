import assert from 'node:assert/strict';
import { createCard } from '../../support/cards.ts';
import { column } from '../../support/column.ts';
import { fundedPartner } from '../../support/money.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

/** A span as OTLP has it in JSON. */
interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  links: { traceId: string }[];
}

const CARDHOLDER = {
  card_name: 'Quokka travel',
  cardholder_first_name: 'Zebulon',
  cardholder_last_name: 'Quagmire',
  email: 'zebulon@quagmire.example',
};
const STRANGER = { traceId: 'abcdef0123456789abcdef0123456789', spanId: '0123456789abcdef' };

describe('traces', () => {
  let collector: LoopbackServer;
  let stack: TestStack;
  let partner: TestPartner;
  const spans: Span[] = [];
  const bodies: string[] = [];
  const authorizations = new Set<string | undefined>();

  before(async () => {
    collector = await listenOnLoopback(async (req, res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString();
      bodies.push(body);
      authorizations.add(req.headers.authorization);
      for (const resource of JSON.parse(body).resourceSpans)
        for (const scope of resource.scopeSpans) spans.push(...scope.spans);
      res.setHeader('content-type', 'application/json').end('{}');
    });
    stack = await startTestStack({
      tracing: { url: `${collector.url}/v1/traces`, headers: { authorization: 'Bearer t' }, ratio: 1 },
    });
    partner = await fundedPartner(stack, 1_000_000);
  });
  after(async () => {
    await stack?.stop();
    await collector?.close();
  });

  async function issue(amount: number) {
    const { status, headers, json } = await createCard(
      partner,
      { amount, ...CARDHOLDER },
      {
        mode: 'live',
        headers: { traceparent: `00-${STRANGER.traceId}-${STRANGER.spanId}-00`, baggage: 'name=Zebulon' },
      },
    );
    assert.ok(status === 201 || status === 202, JSON.stringify(json));
    return { requestId: headers.get('request-id') ?? '', cardId: json.id as string };
  }

  const attribute = ({ attributes }: Span, name: string) =>
    Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0];
  /** The spans of a request's trace, once its workflow has ended. */
  const traceOf = async (requestId: string): Promise<Span[]> => {
    const { traceId } = await until('the request’s span arrives', () =>
      spans.find((span) => attribute(span, 'requestId') === requestId),
    );
    const ofTrace = () => spans.filter((span) => span.traceId === traceId);
    await until('the workflow’s span arrives', () =>
      ofTrace().some(({ name }) => name === 'RunWorkflow:issueCard'),
    );
    return ofTrace();
  };
  /** The names from a span up to the one that began the trace. */
  const pathOf = (trace: Span[], span: Span): string[] => {
    const above = trace.find(({ spanId }) => spanId === span.parentSpanId);
    return [span.name, ...(above === undefined ? [] : pathOf(trace, above))];
  };

  it('join a request, its workflow and its activities, in whichever process each ran', async () => {
    const { requestId, cardId } = await issue(10_041);
    const trace = await traceOf(requestId);
    const named = (name: string) => trace.filter((span) => span.name === name);
    const activities = named('RunActivity:requestIssuance');
    // The first in the API's process, the others in a worker's.
    assert.ok(activities.length >= 2, trace.map(({ name }) => name).join());
    for (const activity of activities) {
      assert.deepEqual(pathOf(trace, activity), [
        'RunActivity:requestIssuance',
        'RunWorkflow:issueCard',
        'StartWorkflow:issueCard',
        'POST /v1/cards',
      ]);
      assert.equal(attribute(activity, 'temporalWorkflowId'), `issue-card/${cardId}`);
    }
    const [http] = named('POST /v1/cards');
    assert.ok(http);
    assert.equal(attribute(http, 'http.response.status_code'), 202);
    assert.equal(attribute(http, 'partnerId'), partner.id);
    assert.equal(attribute(http, 'workflowId'), `issue-card/${cardId}`);
    const [run] = named('RunWorkflow:issueCard');
    assert.ok(run && BigInt(run.endTimeUnixNano) >= BigInt(run.startTimeUnixNano));
    assert.ok(bodies.some((body) => body.includes('card-issuing-api')));
    assert.ok(bodies.some((body) => body.includes('card-issuing-worker')));
    assert.deepEqual([...authorizations], ['Bearer t']);
  });

  it("begin here, and only link to the caller's trace", async () => {
    const { requestId } = await issue(10_000);
    const trace = await traceOf(requestId);
    const [http] = trace.filter(({ parentSpanId }) => !parentSpanId);
    assert.ok(http);
    // It asked not to be sampled: that is not for it to say.
    assert.notEqual(http.traceId, STRANGER.traceId);
    assert.deepEqual(column(http.links, 'traceId'), [STRANGER.traceId]);
  });

  it('contain nothing personal and no secret, even for failures', async () => {
    // The network answers 503 three times.
    const { requestId } = await issue(10_048);
    const trace = await traceOf(requestId);
    assert.ok(trace.some((span) => attribute(span, 'error.type') === 'CardNetworkUnavailable'));
    const all = bodies.join('\n');
    for (const secret of [...Object.values(CARDHOLDER), 'baggage', partner.keys.live, 'sk_live_']) {
      assert.ok(!all.includes(secret), secret);
    }
    for (const { key, value } of spans.flatMap(({ attributes }) => attributes)) {
      // No card number, neither.
      assert.doesNotMatch(String(Object.values(value)[0]), /\b\d{13,19}\b|@|\s/, key);
    }
  });
});
