import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path/posix';
import { init, parse } from 'es-module-lexer';
import { DIRECTIONS, type Direction } from './directions.ts';

await init;

/**
 * The imports of a file that go in a direction that is not allowed, one line each.
 * @param path from the project's root, with slashes
 * @param code TypeScript
 */
export function findViolations(path: string, code: string): string[] {
  const [room, direction] = findDirection(path);
  if (direction === undefined) return [`${path}: belongs to no room of dev/imports/directions.ts`];
  const runtime = runtimeImports(code);
  const types = [...code.matchAll(/^(?:import|export) type [^;]*? from '([^']+)'/gm)].flatMap(
    ([, one]) => one ?? [],
  );
  return [
    ...runtime.filter((one) => !allowed({ path, room, specifier: one }, direction.rooms, direction.packages)),
    ...types.filter(
      (one) => !allowed({ path, room, specifier: one }, [...direction.rooms, ...(direction.types ?? [])]),
    ),
  ].map((specifier) => `${path}: may not import ${specifier}`);
}

/** What a TypeScript file imports when it runs, without types. */
export function runtimeImports(code: string): string[] {
  const [imports] = parse(stripTypeScriptTypes(code));
  return imports.flatMap((one) => ('specifier' in one ? (one.specifier ?? []) : []));
}

function findDirection(path: string): [room: string, direction: Direction | undefined] {
  const rooms = Object.keys(DIRECTIONS).filter((candidate) => isIn(path, candidate));
  const room = rooms.sort((a, b) => b.length - a.length)[0] ?? '';
  return [room, DIRECTIONS[room]];
}

function allowed(
  { path, room, specifier }: { path: string; room: string; specifier: string },
  rooms: readonly string[],
  packages?: readonly string[],
): boolean {
  if (!specifier.startsWith('.')) return packages === undefined || packages.includes(specifier);
  const target = join(dirname(path), specifier);
  const home = room.split('/')[0] ?? '';
  const own = room.endsWith('.ts') || room === home ? home : room;
  return [own, ...rooms].some((other) => isIn(target, other));
}

function isIn(path: string, room: string): boolean {
  return path === room || path.startsWith(`${room}/`);
}
