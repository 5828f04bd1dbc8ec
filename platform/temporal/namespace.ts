import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { StartRefused } from '../process/run-process.ts';
import { SEARCH_ATTRIBUTES } from './search-attributes.ts';

/** A client's connection, or a worker's. */
export type Services = Pick<Connection, 'workflowService' | 'operatorService'>;

/** gRPC status codes. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/** As long as idempotency keys are kept (docs/partners/idempotency.md). */
export const RETENTION = msToTs('30 days');

/** Numbers of temporal.api.enums.v1.IndexedValueType. */
const TYPES: Readonly<Record<string, number>> = { KEYWORD: 2, BOOL: 5 };
/** The types' names in Temporal's tools, and for each a value that a query can compare with. */
const TYPE_NAMES: Readonly<Record<string, string>> = { KEYWORD: 'Keyword', BOOL: 'Bool' };
const VALUES: Readonly<Record<string, string>> = { KEYWORD: "''", BOOL: 'true' };

/** The result of registering search attributes, by name. */
interface Registration {
  added: string[];
  /**
   * Those that the namespace still lacks because these credentials may not add them. Empty if all can be
   * used.
   */
  missing: string[];
}

/**
 * Creates the namespace if it is missing, and its search attributes ({@link registerSearchAttributes}). It is
 * safe to call at every start, and from several processes at once.
 */
export async function registerNamespace(services: Services, namespace: string): Promise<Registration> {
  await eventually([UNAVAILABLE], () => createNamespace(services, namespace));
  return registerSearchAttributes(services, namespace, [NOT_FOUND]);
}

/**
 * Adds the search attributes that the namespace lacks, and returns once all can be used. It is safe to call
 * at every start, and from several processes at once. With credentials that may not add any, as on Temporal
 * Cloud, it only reports which are missing.
 * @param alsoNotYet gRPC statuses that can mean that the server does not know the namespace yet
 * @throws StartRefused if one exists with another type
 */
export async function registerSearchAttributes(
  services: Services,
  namespace: string,
  alsoNotYet: readonly number[] = [],
): Promise<Registration> {
  const notYet = [UNAVAILABLE, ...alsoNotYet];
  let added: string[];
  try {
    added = await eventually([ALREADY_EXISTS, ...notYet], () => addMissing(services, namespace));
  } catch (error) {
    if (!isGrpcServiceError(error) || ![PERMISSION_DENIED, UNIMPLEMENTED].includes(error.code)) throw error;
    return { added: [], missing: await findUnusable(services, namespace) };
  }
  const query = SEARCH_ATTRIBUTES.map(comparison).join(' OR ');
  await eventually([INVALID_ARGUMENT, ...notYet], () =>
    services.workflowService.countWorkflowExecutions({ namespace, query }),
  );
  return { added, missing: [] };
}

/**
 * {@link registerSearchAttributes} for a process that is starting. If some are missing, the process starts
 * anyway and logs what to do.
 */
export async function ensureSearchAttributes(
  services: Services,
  namespace: string,
  logger: Logger,
): Promise<void> {
  try {
    const { added, missing } = await registerSearchAttributes(services, namespace);
    if (added.length > 0) logger.info({ added }, 'added search attributes to the namespace');
    if (missing.length > 0) logger.error({ missing }, howToAdd(namespace, missing));
  } catch (error) {
    logger.error(
      { error: describeError(error) },
      `could not make sure that the Temporal namespace ${namespace} has the search attributes`,
    );
  }
}

/** Instructions for somebody who may add search attributes. */
export function howToAdd(namespace: string, missing: readonly string[]): string {
  const wanted = SEARCH_ATTRIBUTES.filter(({ name }) => missing.includes(name)).map(
    ({ name, type }) => [name, TYPE_NAMES[type]] as const,
  );
  const flags = wanted.map(([name, type]) => `--search-attribute "${name}=${type}"`).join(' ');
  const pairs = wanted.map(([name, type]) => `--name ${name} --type ${type}`).join(' ');
  return (
    `The Temporal namespace ${namespace} lacks the search attributes ${missing.join(', ')}, or has them with another type, ` +
    'and these credentials may not add them. Until they are added, no workflow can start. On Temporal Cloud, run ' +
    `"tcld namespace search-attributes add --namespace ${namespace} ${flags}", or add them in the UI; elsewhere, run ` +
    `"temporal operator search-attribute create --namespace ${namespace} ${pairs}".`
  );
}

async function createNamespace({ workflowService }: Services, namespace: string): Promise<void> {
  try {
    await workflowService.describeNamespace({ namespace });
    return;
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
  }
  try {
    await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: RETENTION });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== ALREADY_EXISTS) throw explained(error, namespace);
  }
}

function explained(error: unknown, namespace: string): unknown {
  if (!isGrpcServiceError(error) || ![PERMISSION_DENIED, UNIMPLEMENTED].includes(error.code)) return error;
  return new StartRefused(
    `There is no Temporal namespace ${namespace}, and these credentials may not create it: create it, or correct TEMPORAL_NAMESPACE.`,
  );
}

/**
 * Retries while the server's parts have not all learned of a change, which is what these statuses can mean.
 */
async function eventually<T>(notYet: readonly number[], attempt: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + 90_000;
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.5, 2_000)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isGrpcServiceError(error) || !notYet.includes(error.code) || Date.now() > giveUpAt) throw error;
      await delay(pauseMs);
    }
  }
}

/** @returns the names of the attributes it added */
async function addMissing({ operatorService }: Services, namespace: string): Promise<string[]> {
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const missing: Record<string, number> = {};
  for (const { name, type } of SEARCH_ATTRIBUTES) {
    const found = customAttributes[name];
    const wanted = TYPES[type];
    if (found === undefined) missing[name] = wanted as number;
    else if (found !== wanted) {
      throw new StartRefused(
        `namespace ${namespace} has a search attribute ${name} of another type (${found} instead of ${wanted}); ` +
          'remove it there, or use another namespace (TEMPORAL_NAMESPACE)',
      );
    }
  }
  if (Object.keys(missing).length > 0)
    await operatorService.addSearchAttributes({ namespace, searchAttributes: missing });
  return Object.keys(missing);
}

/**
 * The attributes that queries can't use because they are missing or have another type. Read access is enough
 * to find out.
 */
async function findUnusable({ workflowService }: Services, namespace: string): Promise<string[]> {
  const unusable: string[] = [];
  for (const attribute of SEARCH_ATTRIBUTES) {
    try {
      await workflowService.countWorkflowExecutions({ namespace, query: comparison(attribute) });
    } catch (error) {
      if (!isGrpcServiceError(error) || error.code !== INVALID_ARGUMENT) throw error;
      unusable.push(attribute.name);
    }
  }
  return unusable;
}

/** In backquotes, since `Mode` is a keyword of the query language. */
const comparison = ({ name, type }: (typeof SEARCH_ATTRIBUTES)[number]): string =>
  `\`${name}\` = ${VALUES[type]}`;
