import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { CodecEnvironment } from '../../platform/config/codec.ts';
import { OperatorEnvironment } from '../../platform/config/operator.ts';
import { apiEnvironment, MigrationEnvironment, WorkerEnvironment } from '../../platform/config/service.ts';

const ROOT = new URL('../../', import.meta.url);
export const readDeployed = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

// biome-ignore lint/suspicious/noExplicitAny: resources of several kinds.
export type Resource = any;

/** The resources of deploy/kubernetes/, as Kubernetes reads them: YAML 1.1, in which 0400 is octal. */
export function kubernetesResources(...names: string[]): Resource[] {
  return names.flatMap((name) =>
    parseAllDocuments(readDeployed(`deploy/kubernetes/${name}.yaml`), { version: '1.1' }).map((document) =>
      document.toJS(),
    ),
  );
}

/** The names of the variables that a process reads: the configuration that it parses says so. */
export function variablesRead(entry: string, env: Record<string, string>): string[] {
  if (entry === 'api/main.ts') return Object.keys(apiEnvironment(env).shape);
  if (entry === 'worker/main.ts') return Object.keys(WorkerEnvironment.shape);
  if (entry === 'operator/codec/main.ts') return Object.keys(CodecEnvironment.shape);
  if (entry === 'operator/main.ts') return Object.keys(OperatorEnvironment.shape);
  if (entry === 'operator/migrate.ts') return Object.keys(MigrationEnvironment.shape);
  throw new Error(`${entry} is no process of ours`);
}

/** The secrets of an environment, by variable, and the file that each is in. */
export function secretFiles(env: Record<string, string>): Map<string, string> {
  const files = Object.entries(env).filter(([name]) => name.endsWith('_FILE'));
  return new Map(files.map(([name, path]) => [name.slice(0, -'_FILE'.length), path]));
}
