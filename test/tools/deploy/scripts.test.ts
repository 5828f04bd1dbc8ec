import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Writes down what it was called with, and the images and names of what it was given. */
const KUBECTL = `#!/bin/sh
echo "kubectl $*" >> "$CALLS"
case " $* " in *" --filename - "*) grep -E 'image:|OPERATOR|secretName' >> "$CALLS" ;; esac
case "$*" in
  *"--output name"*) echo job/migrate-1 ;;
  *"wait --for=condition=complete"*) exit "\${MIGRATION:-0}" ;;
  *exec*) echo 'the answer'; exit "\${COMMAND:-0}" ;;
esac
`;

describe('the scripts for Kubernetes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-'));
  const kubectl = join(folder, 'kubectl');
  writeFileSync(kubectl, KUBECTL);
  chmodSync(kubectl, 0o755);
  const CALLS = join(folder, 'calls');
  const IMAGE = 'registry.example.com/card-issuing@sha256:0123';

  const run = (script: string, args: string[], env: Record<string, string>) => {
    writeFileSync(CALLS, '');
    const PATH = `${folder}:${process.env.PATH}`;
    const ended = spawnSync(`deploy/kubernetes/${script}`, args, {
      encoding: 'utf8',
      env: { ...env, PATH, CALLS },
    });
    const calls = readFileSync(CALLS, 'utf8').trim().split('\n');
    return { status: ended.status, stdout: ended.stdout, stderr: ended.stderr, calls };
  };

  it('roll out the migrations, then the workers, then the API, each after the one before is done', () => {
    const { status, calls, stderr } = run('roll-out.sh', [], { IMAGE });
    assert.equal(status, 0, stderr);
    const steps = calls
      .filter((line) => line.startsWith('kubectl'))
      .map((line) => line.replace('kubectl ', ''));
    const mine = '--namespace card-issuing';
    assert.deepEqual(steps, [
      'apply --filename config.yaml',
      'create --filename - --output name',
      `${mine} wait --for=condition=complete --timeout=15m job/migrate-1`,
      'apply --filename -',
      `${mine} rollout status deployment/worker --timeout=15m`,
      'apply --filename -',
      `${mine} rollout status deployment/api --timeout=15m`,
      `${mine} rollout status deployment/reveal --timeout=15m`,
      `${mine} rollout status deployment/network --timeout=15m`,
      'apply --filename -',
      `${mine} rollout status deployment/codec --timeout=15m`,
    ]);
    const images = calls.filter((line) => line.includes('image:')).map((line) => line.trim());
    assert.deepEqual(images, Array(6).fill(`image: ${IMAGE}`));
  });

  it('roll out nothing if the migrations fail', () => {
    const { status, calls, stderr } = run('roll-out.sh', [], { IMAGE, MIGRATION: '1' });
    assert.equal(status, 1);
    assert.match(stderr, /did not complete, so nothing else was changed/);
    assert.ok(!calls.some((line) => line.includes('rollout') || line === 'kubectl apply --filename -'));
  });

  it("run an operator's command in a pod of its own, in the operator's name, and delete it afterwards", () => {
    const { status, calls, stdout } = run('operator.sh', ['audit', 'list', '--since', '1 h'], {
      ...{ OPERATOR: 'anna@example.com', IMAGE, COMMAND: '1' },
    });
    assert.equal(status, 1, "the command's own status");
    assert.equal(stdout, 'the answer\n');
    assert.ok(calls.some((line) => line.includes(`image: ${IMAGE}`)));
    assert.ok(calls.some((line) => line.includes("{ name: OPERATOR, value: 'anna@example.com' }")));
    assert.match(
      calls.at(-2) ?? '',
      /exec --stdin job\/migrate-1 -- node .*operator\/main\.ts audit list --since 1 h$/,
    );
    assert.match(calls.at(-1) ?? '', /delete --wait=false job\/migrate-1$/);
  });

  it("run an operator's command with the login of another Secret", () => {
    const secretsOf = (env: Record<string, string>) =>
      run('operator.sh', ['audit', 'list'], { OPERATOR: 'anna', IMAGE, ...env })
        .calls.filter((line) => line.includes('secretName'))
        .map((line) => line.trim().replace('secretName: ', ''));
    assert.deepEqual(secretsOf({}), ['card-issuing-operator', 'card-issuing-issuer']);
    const own = { OPERATOR_SECRET: 'card-issuing-operator-anna' };
    assert.deepEqual(secretsOf(own), ['card-issuing-operator-anna', 'card-issuing-issuer']);
  });

  it('say what is missing, and start nothing', () => {
    for (const [script, env, missing] of [
      ['roll-out.sh', {}, /set IMAGE/],
      ['operator.sh', { IMAGE }, /set OPERATOR/],
      ['operator.sh', { OPERATOR: 'anna' }, /set IMAGE/],
      ['operator.sh', { IMAGE, OPERATOR: "anna' }\n" }, /OPERATOR may have letters/],
      ['operator.sh', { IMAGE, OPERATOR: 'anna', OPERATOR_SECRET: 'a|b' }, /is no name of a Secret/],
    ] as const) {
      const { status, stderr, calls } = run(script, [], env);
      assert.notEqual(status, 0);
      assert.match(stderr, missing);
      assert.deepEqual(calls, ['']);
    }
  });
});
