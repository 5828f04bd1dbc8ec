import { type Command, Option } from 'commander';
import { z } from 'zod';
import { type IdPrefix, isId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { read, readEach, Text, WholeNumber } from './flag-values.ts';
import type { Output } from './render.ts';
import type { Session } from './session.ts';

/** What verbs work with. */
export interface Tools {
  session: Session;
  /**
   * Prints what is too long for one answer, and waits until it is read. @returns false if nobody reads any
   * more
   */
  out(text: string): Promise<boolean>;
  /** Prints to standard error. */
  err(text: string): void;
  /** Asks the person at the terminal; null if there is nobody to ask. */
  confirm(question: string): Promise<boolean | null>;
  resolveWaitMs: number;
  reconcileGraceMs: number;
}

/** What commands are built with. */
export interface Verbs extends Tools {
  /** Help text with complete command lines. */
  examples(...lines: string[]): string;
  /** Prints an answer; null if there is none. */
  print(answer: Output | null): void;
}

/** An argument or a flag. Its name is its key in {@link Verb.takes}, in a flag with dashes. */
interface Taken<T> {
  kind: 'argument' | 'flag' | 'needed flag';
  /**
   * In the help: of a flag, such as `<id>`, or empty if it has none; of an argument, what is around its name,
   * such as `[]`.
   */
  value: string;
  help: string;
  read?: (text: string, previous?: never) => T;
  /** The key of a flag that can't be given as well. */
  conflicts?: string | undefined;
  /** What it is if it is left out. */
  missing?: T;
}

// biome-ignore lint/suspicious/noExplicitAny: each has a type of its own.
type Takes = Readonly<Record<string, Taken<any>>>;
type Given<T extends Takes> = { [Name in keyof T]: T[Name] extends Taken<infer Value> ? Value : never };

export const argument = (help: string, schema?: z.ZodType<string>): Taken<string> => ({
  kind: 'argument',
  value: '<>',
  help,
  read: schema === undefined ? (text) => text : read(schema),
});

export const optionalArgument = (help: string): Taken<string | null> => {
  return { kind: 'argument', value: '[]', help };
};

export const severalArguments = <T>(help: string, schema: z.ZodType<T>): Taken<T[]> => {
  return { kind: 'argument', value: '<...>', help, read: readEach(schema) };
};

/** Null if it is left out. */
export const flag = <T>(
  value: string,
  help: string,
  schema: z.ZodType<T>,
  conflicts?: string,
): Taken<T | null> => ({ kind: 'flag', value, help, read: read(schema), conflicts });

export const flagOr = <T>(missing: T, value: string, help: string, schema: z.ZodType<T>): Taken<T> => ({
  ...needed(value, help, schema),
  kind: 'flag',
  missing,
});

export const needed = <T>(value: string, help: string, schema: z.ZodType<T>): Taken<T> => {
  return { kind: 'needed flag', value, help, read: read(schema) };
};

/** A flag without a value. */
export const toggle = (help: string, conflicts?: string): Taken<boolean> => {
  return { kind: 'flag', value: '', help, conflicts, missing: false };
};

export const reason = (help: string) => needed('<reason>', help, Text(500));

export const oneOf = <T extends string>(options: readonly T[]) =>
  z.enum(options, `must be one of ${options.join(', ')}`);

/** A verb of the command line, as data. */
export interface Verb<T extends Takes = Takes> {
  about: string;
  takes?: T;
  /** Each is what follows the noun and the verb. */
  examples: readonly string[];
  /** @returns null if it has printed its answer itself */
  run(given: Given<T>, tools: Tools): Promise<Output | null>;
}

export type Noun = Readonly<Record<string, Verb>>;

export const verb = <T extends Takes>(declared: Verb<T>): Verb => declared;

/** A verb that shows one thing by its id. */
export const show = (declared: {
  about: string;
  /** What the id is of: `of the card`. */
  id: string;
  example: string;
  read(orm: Orm, id: string, tools: Tools): Promise<object>;
}): Verb =>
  verb({
    about: declared.about,
    takes: { id: argument(declared.id) },
    examples: [declared.example],
    run: async ({ id }, tools) => ({ value: await declared.read(await tools.session.orm(), id, tools) }),
  });

/** A list that may be long, newest first, cut off at `--limit`. */
interface List<T extends Takes> {
  about: string;
  takes?: T;
  examples: readonly string[];
  /** What its table shows, separated by spaces. */
  columns: string | ((given: Given<T>) => string);
  /**
   * The prefixes of its lines' ids, if `--before` shows the next page; and the flag that this needs, if not
   * every list has one.
   */
  pages?: readonly IdPrefix[];
  pagedBy?: keyof T & string;
  /** @throws WrongUsage if the flags do not go together */
  refuse?(given: Given<T> & Page): void;
  /** Of an unknown `partner`, nothing is read. */
  read(orm: Orm, wanted: Given<T> & Page): Promise<{ id: string }[]>;
  /** What to do next, below a list that is not empty, and below an empty one. */
  note?: string;
  none?: string;
}

interface Page {
  /** Only those older than this one. */
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

export function list<T extends Takes>(declared: List<T>): Verb {
  const { about, examples, columns, pages = [], pagedBy, note, none = 'Nothing found.' } = declared;
  const isLine = (text: string) => pages.some((prefix) => isId(prefix, text));
  const lines = pages.map((prefix) => `${prefix}_01k0…`).join(' or ');
  const before = flag('<id>', OLDER, z.string().refine(isLine, `must be the id of a line: ${lines}`));
  return {
    about,
    examples,
    takes: { ...declared.takes, ...(pages.length > 0 && { before }), limit: LIMIT },
    async run(given, { session, err }) {
      const limit: number = given.limit ?? DEFAULT_LIMIT;
      const wanted = { ...given, before: given.before ?? null, limit: limit + 1 } as Given<T> & Page;
      declared.refuse?.(wanted);
      const orm = await session.orm();
      if (typeof given.partner === 'string') {
        const { readPartner } = await import('../accounts/reads.ts');
        await readPartner(orm, given.partner);
      }
      const found = await declared.read(orm, wanted);
      const isPaged = pages.length > 0 && (pagedBy === undefined || given[pagedBy] !== null);
      if (found.length > limit) err(moreThan(limit, isPaged ? found[limit - 1]?.id : undefined));
      return {
        value: found.slice(0, limit),
        columns: (typeof columns === 'string' ? columns : columns(wanted)).split(' '),
        note: found.length === 0 ? none : note,
      };
    },
  };
}

const OLDER = 'only those older than this one: the next page';
const DEFAULT_LIMIT = 100;
const LIMIT = flag(
  '<number>',
  `list at most this many (default: ${DEFAULT_LIMIT})`,
  WholeNumber(z.number().min(1).max(10_000)),
);

const moreThan = (limit: number, last: string | undefined) =>
  `There are more than ${limit}: narrow the search, or raise --limit` +
  (last === undefined ? '.\n' : `; --before ${last} shows the next ones.\n`);

/** Adds a noun's verbs to its command. */
export function addVerbs(command: Command, noun: Noun, tools: Verbs): void {
  const lines = (name: string, { examples }: Verb) =>
    examples.map((example) => `${command.name()} ${name} ${example}`.trimEnd());
  const firstLines = Object.entries(noun).flatMap(([name, declared]) => lines(name, declared).slice(0, 1));
  command.addHelpText('after', tools.examples(...firstLines));
  for (const [name, declared] of Object.entries(noun)) {
    const { about, takes = {}, run } = declared;
    const added = command.command(name).description(about);
    const names = Object.entries(takes).filter(([, { kind }]) => kind === 'argument');
    for (const [key, { value, help, read: parse }] of names)
      added.argument(`${value[0]}${key}${value.slice(1)}`, help, parse as never);
    const flags = Object.entries(takes)
      .filter(([, { kind }]) => kind !== 'argument')
      .map(([key, taken]) => ({ key, missing: taken.missing ?? null, option: asOption(key, taken) }));
    for (const { option } of flags) added.addOption(option);
    added.addHelpText('after', tools.examples(...lines(name, declared)));
    added.action(async (...given) => {
      const options: Record<string, unknown> = given[names.length];
      const values = [
        ...names.map(([key], index) => [key, given[index] ?? null]),
        ...flags.map(({ key, option, missing }) => [key, options[option.attributeName()] ?? missing]),
      ];
      tools.print(await run(Object.fromEntries(values), tools));
    });
  }
}

function asOption(key: string, { kind, value, help, read: parse, conflicts }: Taken<unknown>): Option {
  const name = key.replaceAll('_', '-').replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  const option = new Option(`--${name} ${value}`.trimEnd(), help);
  if (parse !== undefined) option.argParser(parse as never);
  if (conflicts !== undefined) option.conflicts(conflicts);
  return option.makeOptionMandatory(kind === 'needed flag');
}

/** The workflow of something that was made, with its status. In test mode there is none. */
export const workflowOf = async (
  session: Session,
  { mode, workflow_id }: { mode: Mode; workflow_id: string },
): Promise<{ workflow_id: string | null; workflow_status: string | null }> =>
  mode === 'test'
    ? { workflow_id: null, workflow_status: null }
    : { workflow_id, workflow_status: await session.workflowStatus(workflow_id) };
