import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

const FOLDER = new URL('../../../deploy/kubernetes/', import.meta.url);

describe('the Kubernetes manifests', () => {
  it('keep the variables that Kubernetes makes of Services, such as CODEC_PORT, out of every pod', () => {
    const pods = readdirSync(FOLDER, { encoding: 'utf8' })
      .filter((file) => file.endsWith('.yaml'))
      .flatMap((file) =>
        parseAllDocuments(readFileSync(new URL(file, FOLDER), 'utf8'))
          .map((document) => document.toJS())
          .filter((one) => one?.spec?.template?.spec?.containers !== undefined)
          .map((one) => [`${one.kind} ${one.metadata.name}`, one.spec.template.spec.enableServiceLinks]),
      );
    assert.ok(pods.length >= 4);
    for (const [name, links] of pods) assert.equal(links, false, name);
  });
});
