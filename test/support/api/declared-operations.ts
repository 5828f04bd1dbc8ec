import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Declaration } from '../../../api/http/route.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { CallOptions } from '../stack.ts';

export const MODES = ['test', 'live'] as const;

/** As the reference names it: `GET /cards/{cardId}`. */
export const nameOf = ({ method, path }: Declaration): string =>
  `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '{$1}')}`;

export const modesOf = ({ mode }: Declaration): readonly Mode[] => (mode === undefined ? MODES : [mode]);

export const parametersOf = ({ path }: Declaration): string[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

/** The path with these values for its parameters, and the query of its example. */
export function pathTo({ path, examples }: Declaration, values: Record<string, string> = {}): string {
  const query = examples.query === undefined ? '' : `?${new URLSearchParams(examples.query)}`;
  return path.replace(/:(\w+)/g, (_, name: string) => values[name] ?? 'x') + query;
}

/** The body of its example, and a new Idempotency-Key if it takes one. */
export const exampleOf = ({ examples, idempotencyKey }: Declaration): CallOptions => ({
  ...(examples.body && { body: examples.body }),
  ...(idempotencyKey && { idempotencyKey: randomUUID() }),
});

export const queryParametersOf = ({ query }: Declaration): string[] =>
  query instanceof z.ZodObject ? Object.keys(query.shape) : [];
