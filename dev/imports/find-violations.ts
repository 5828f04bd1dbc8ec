import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path/posix';
import { init, parse } from 'es-module-lexer';
import { DIRECTIONS, type Direction, type Place, ROLES } from './directions.ts';

await init;

/**
 * The imports of a file that go in a direction that is not allowed, one line each.
 * @param path from the project's root, with slashes
 * @param code TypeScript
 */
export function findViolations(path: string, code: string): string[] {
  const [room, direction] = findDirection(path);
  if (direction === undefined) return [`${path}: belongs to no room of dev/imports/directions.ts`];
  const types = [...code.matchAll(/^(?:import|export) type [^;]*? from '([^']+)'/gm)].flatMap(
    ([, one]) => one ?? [],
  );
  const role = ROLES.find(({ name }) => name.test(path));
  const rooms = [...ownPlaces(room, direction), ...direction.rooms, ...(role?.also ?? [])];
  const asTypes = [...rooms, ...(direction.types ?? [])];
  const { only, onlyTypes = [] } = role ?? {};
  return [
    ...(path.endsWith('.tsx') ? anyImports(code) : runtimeImports(code)).filter(
      (one) =>
        !isAllowedPackage(one, direction.packages) && !(leads(path, one, rooms) && leads(path, one, only)),
    ),
    ...types.filter(
      (one) =>
        one.startsWith('.') &&
        !(leads(path, one, asTypes) && leads(path, one, only === undefined ? only : [...only, ...onlyTypes])),
    ),
  ].map((specifier) => `${path}: may not import ${specifier}`);
}

/** What a TypeScript file imports when it runs, without types. */
export function runtimeImports(code: string): string[] {
  const [imports] = parse(stripTypeScriptTypes(code));
  return imports.flatMap((one) => ('specifier' in one ? (one.specifier ?? []) : []));
}

/** What a file with JSX imports. Its types count, too: pages may import the same in either way. */
const anyImports = (code: string): string[] =>
  [...code.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].flatMap(([, one]) => one ?? []);

function findDirection(path: string): [room: string, direction: Direction | undefined] {
  const rooms = Object.keys(DIRECTIONS).filter((candidate) => isIn(path, candidate));
  const room = rooms.sort((a, b) => b.length - a.length)[0] ?? '';
  return [room, DIRECTIONS[room]];
}

function ownPlaces(room: string, { own }: Direction): readonly Place[] {
  return own ?? [room.endsWith('.ts') ? dirname(room) : room];
}

/** Whether an import of a package is allowed. */
function isAllowedPackage(specifier: string, packages?: readonly string[]): boolean {
  return !specifier.startsWith('.') && (packages === undefined || packages.includes(specifier));
}

/** Whether a relative import leads to one of the places; to any if they are left out. */
function leads(path: string, specifier: string, places?: readonly Place[]): boolean {
  if (!specifier.startsWith('.')) return false;
  const target = join(dirname(path), specifier);
  return (
    places === undefined ||
    places.some((place) => (typeof place === 'string' ? isIn(target, place) : place.test(target)))
  );
}

/** @param room a file, a folder, or `folder/*` for the files directly in it */
function isIn(path: string, room: string): boolean {
  if (room.endsWith('/*')) return dirname(path) === room.slice(0, -2);
  return path === room || path.startsWith(`${room}/`);
}
