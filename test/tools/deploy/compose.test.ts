import assert from 'node:assert/strict';
import { parse as parseYaml } from 'yaml';
import { type Resource, readDeployed } from '../../support/deployed.ts';

describe('Docker Compose', () => {
  const { services, networks } = parseYaml(readDeployed('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Resource>;
    networks: Resource;
  };
  const networksOf = (name: string): string[] => {
    const { networks: own, network_mode: mode } = services[name];
    return mode === 'none' ? [] : (own ?? ['default']);
  };
  const within = (network: string) =>
    Object.keys(services)
      .filter((name) => networksOf(name).includes(network))
      .toSorted();

  it('gives no container rights that it does not need, nor new ones', () => {
    const ADDED: Record<string, string[]> = {
      secrets: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'],
      postgres: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
    };
    for (const [name, service] of Object.entries(services)) {
      assert.deepEqual(service.cap_drop, ['ALL'], name);
      assert.deepEqual(service.cap_add, ADDED[name], name);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
      for (const right of ['privileged', 'devices', 'pid', 'ipc'])
        assert.equal(service[right], undefined, name);
    }
  });

  it('lets only those reach PostgreSQL, and Temporal, that work with it', () => {
    const usesDatabase = Object.keys(services).filter((name) => {
      const { environment = {}, entrypoint = [], command = [] } = services[name];
      return (
        environment.DATABASE_URL_FILE !== undefined ||
        /postgres|setup-temporal-schema|create-logins/.test(
          JSON.stringify([environment, entrypoint, command]),
        )
      );
    });
    assert.deepEqual(within('database'), usesDatabase.toSorted());
    const usesTemporal = Object.keys(services).filter(
      (name) => services[name].environment?.TEMPORAL_ADDRESS !== undefined,
    );
    assert.deepEqual(within('temporal'), [...usesTemporal, 'temporal'].toSorted());
    assert.deepEqual(networks, { database: { internal: true }, temporal: { internal: true } });
    assert.deepEqual(networksOf('postgres'), ['database']);
  });

  it('publishes ports only of who is in the network that leads out, on this machine alone', () => {
    for (const [name, { ports = [] }] of Object.entries(services)) {
      if (ports.length > 0) assert.ok(networksOf(name).includes('default'), name);
      for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
    }
  });
});
