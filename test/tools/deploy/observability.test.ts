import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parser } from '@prometheus-io/lezer-promql';
import { parse as parseYaml } from 'yaml';
import { createCard } from '../../support/cards.ts';
import { type DepositStack, openAddress, startDepositStack } from '../../support/deposits/deposit-stack.ts';
import { findProgram } from '../../support/find-program.ts';
import { fundedPartner } from '../../support/money.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { setUrl } from '../../support/webhooks/events.ts';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const pathOf = (file: string) => fileURLToPath(new URL(`../../../${file}`, import.meta.url));
const read = (file: string) => readFileSync(pathOf(file), 'utf8');

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook: string };
}

const rules: Rule[] = parseYaml(read('deploy/observability/alerts.yaml')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);
const panels: { title: string; targets?: { expr: string }[] }[] = JSON.parse(
  read('deploy/observability/dashboard.json'),
).panels;
const operating = /^## Metrics$(.*?)^## /ms.exec(read('docs/monitoring.md'))?.[1] ?? '';
const runbooks = read('docs/runbooks.md');

const OF_PROMETHEUS = ['job', 'instance'];
/** What kube-state-metrics adds on Kubernetes. */
const OF_KUBERNETES = { kube_deployment_status_replicas_available: ['namespace', 'deployment'] };
/** The SDK exposes them from the first failure on, which nothing here provokes. */
const OF_FAILURES = [
  'temporal_workflow_task_execution_failed_total',
  'temporal_activity_execution_failed_total',
];
/** Requests to an issuer wait for turns. The simulated network, which this stack has, takes any number. */
const OF_ISSUERS = ['card_network_turn_wait_seconds', 'card_network_rate_limited_total'];

describe('the use of metrics', () => {
  let deposits: DepositStack;
  let receiver: Receiver;
  let partner: TestPartner;
  let text = '';
  const exposed = new Map<string, Set<string>>();

  before(async () => {
    receiver = await startReceiver();
    deposits = await startDepositStack();
    const { stack } = deposits;
    partner = await fundedPartner(stack);
    await setUrl(stack, partner, receiver.url);
    await openAddress(partner, 1_000);
    await partner.call('GET', '/cards/card_of_nobody');
    await partner.call('GET', '/no-such-route/of-somebody');
    await createCard(partner, { amount: 1_000 });
    await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    // Completes in a worker, not in the worker that the API hosts.
    await createCard(partner, { amount: 1_041 }, { mode: 'live' });
    const { host, port } = stack.config;
    const urls = [`http://${host}:${port}`, stack.workerUrl()];
    const wanted = [
      'webhook_attempt_duration_seconds_bucket{',
      'deposit_node_state{',
      'ledger_check_violations{',
      'temporal_workflow_completed_total{',
      'temporal_activity_execution_latency_seconds_bucket{',
      'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{',
    ];
    text = await until('everything is measured', async () => {
      const texts = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).text()));
      const all = texts.join('');
      return wanted.every((sample) => all.includes(sample)) && all;
    });
    for (const [, name = '', labels = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? /gm)) {
      const known = exposed.get(name) ?? new Set();
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
      exposed.set(name, known);
    }
  });
  after(async () => {
    await deposits?.stop();
    await receiver?.stop();
  });

  function namesOf(expr: string): { metrics: string[]; labels: string[] } {
    const code = expr.replaceAll('$__rate_interval', '5m');
    const names = { metrics: [] as string[], labels: [] as string[] };
    parser.parse(code).iterate({
      enter(node) {
        assert.ok(!node.type.isError, `not PromQL: ${expr}`);
        const found = code.slice(node.from, node.to);
        if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector')
          names.metrics.push(found);
        if (node.name === 'LabelName') names.labels.push(found);
      },
    });
    return names;
  }

  function assertExists(where: string, expr: string): void {
    const { metrics, labels } = namesOf(expr);
    assert.ok(metrics.length > 0, `${where}: no metric in ${expr}`);
    const known = new Set(OF_PROMETHEUS);
    for (const metric of metrics) {
      if (metric === 'up') continue;
      if (metric in OF_KUBERNETES) {
        for (const label of OF_KUBERNETES.kube_deployment_status_replicas_available) known.add(label);
        continue;
      }
      if (OF_FAILURES.includes(metric)) {
        for (const label of ['task_queue', 'activity_type']) known.add(label);
        continue;
      }
      assert.ok(exposed.has(metric), `${where}: no process exposes ${metric}`);
      for (const label of exposed.get(metric) ?? []) known.add(label);
    }
    for (const label of labels) assert.ok(known.has(label), `${where}: ${metrics} have no label ${label}`);
  }

  it('is correct in every panel of the dashboard', () => {
    const targets = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
    assert.ok(targets.length > 30);
    for (const { title, expr } of targets) assertExists(title, expr);
  });

  it('is correct in every alert, each of which has its own runbook', () => {
    for (const { alert, expr, labels, annotations } of rules) {
      assertExists(alert, expr);
      assert.match(labels.severity, /^(page|ticket)$/);
      assert.ok(annotations.summary && annotations.description, alert);
      assert.equal(annotations.runbook, `docs/runbooks.md#${alert.toLowerCase()}`);
      const [, severity] = new RegExp(`^## ${alert}\n\n\`(\\w+)\``, 'm').exec(runbooks) ?? [];
      assert.equal(severity, labels.severity, `${alert} in docs/runbooks.md`);
    }
    const headings = [...runbooks.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(
      headings,
      rules.map(({ alert }) => alert),
    );
  });

  it('is correct in the operating guide, which has each of our own metrics', () => {
    const named = new Set([...operating.matchAll(/`([a-z]+(?:_[a-z0-9]+)+)`/g)].map(([, name = '']) => name));
    const types = new Map(
      [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type]),
    );
    const ours = [...types.keys()].filter((name) => !/^(nodejs|process|temporal)_/.test(name));
    assert.ok(ours.length > 20);
    for (const name of ours) assert.ok(named.has(name), `docs/monitoring.md has no ${name}`);
    const prefixes =
      /^(webhook|deposits?_(scan|node|waiting)|attention|ledger_check_|database|dependency|admission|http_request|card_network|temporal|nodejs|process|measurement|card_issuing)/;
    for (const name of named) {
      if (!prefixes.test(name) || name === 'ledger_check' || OF_FAILURES.includes(name)) continue;
      if (OF_ISSUERS.includes(name)) continue;
      assert.ok(types.has(name), `docs/monitoring.md: no process exposes ${name}`);
    }
  });

  it('is correct in the queries of the runbooks', () => {
    const spans = [...runbooks.matchAll(/`([^`]*)`/g)].map(([, code = '']) => code);
    const queries = spans.filter((code) => /^(sum|count|rate)[ (]/.test(code));
    assert.ok(queries.length > 5);
    for (const query of queries) assertExists('docs/runbooks.md', query);
  });

  it("includes only failure metrics that Temporal's SDK has", () => {
    const bridge = createRequire(createRequire(import.meta.url).resolve('@temporalio/worker')).resolve(
      '@temporalio/core-bridge/package.json',
    );
    const platform = { linux: 'unknown-linux-gnu', darwin: 'apple-darwin' }[
      process.platform as 'linux' | 'darwin'
    ];
    const arch = process.arch === 'x64' ? 'x86_64' : 'aarch64';
    const code = readFileSync(
      bridge.replace('package.json', `releases/${arch}-${platform}/index.node`),
      'latin1',
    );
    for (const name of OF_FAILURES) assert.ok(code.includes(name.replace(/^temporal_|_total$/g, '')), name);
  });

  it('includes no label with a partner, card, key or path that a client chose', () => {
    for (const secret of [partner.id, partner.keys.live, 'card_', 'evt_', 'of_nobody', 'of-somebody'])
      assert.ok(
        !text.replaceAll(/card_(issuing|network|issuance|topup|withdrawal|status)\w*/g, '').includes(secret),
        secret,
      );
    assert.match(
      text,
      /^http_request_duration_seconds_count\{method="GET",route="none",status="404"\} \d+$/m,
    );
  });

  it("passes the alerts' own tests", () => {
    const promtool = findProgram({ names: ['promtool'], variable: 'PROMTOOL', debianPackage: 'prometheus' });
    if (promtool === undefined) return;
    const run = (...args: string[]) => execFileSync(promtool, args, { encoding: 'utf8' });
    assert.match(run('check', 'rules', pathOf('deploy/observability/alerts.yaml')), /SUCCESS/);
    assert.match(run('test', 'rules', pathOf('deploy/observability/alerts.test.yaml')), /SUCCESS/);
    assert.match(
      run('check', 'config', '--syntax-only', pathOf('deploy/observability/prometheus.yml')),
      /SUCCESS/,
    );
  });
});
