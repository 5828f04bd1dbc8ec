import { ApiError } from './api-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

// A global pattern would make an object of each match, and a body can have 30,000 of them: these are only
// asked where they end.
const STRING = /"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[ !#-[\]-\uffff]*)*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const PUNCTUATION = new Set('[]{},:');
/** In a text that is JSON. */
const ANY_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const ANY_NUMBER = /-?\d[\d.eE+-]*/y;
const INTEGER = /^-?\d+$/;

/** No request nests its values deeper than 5 levels. */
const MAX_DEPTH = 32;

interface JsonLimits {
  values: number;
  fields: number;
}

const UNLIMITED: JsonLimits = { values: Number.POSITIVE_INFINITY, fields: Number.POSITIVE_INFINITY };

/**
 * The JSON value of a body. A number that isn't written as an integer becomes NaN, so that no schema accepts
 * 1e400, 1.0 or a fraction that rounds to an integer as an amount of cents. A field that is sent twice is
 * refused: parsers disagree about which of two amounts counts.
 * @param limits how many values it may have, those in other values included, and how many fields one object
 * @throws ApiError `validation_failed`
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits = UNLIMITED): unknown {
  const text = decodeText(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) {
      const lines = text.slice(0, errorOffset(text)).split('\n');
      const place = `line ${lines.length}, character ${(lines.at(-1) ?? '').length + 1}`;
      throw ApiError.ofField('body', `body must be valid JSON, and stops being so at ${place}`);
    }
    if (error instanceof RangeError) throw nestedTooDeeply();
    throw error;
  }
  return integersOnly(value, text, limits);
}

const nestedTooDeeply = () => ApiError.ofField('body', 'body is nested too deeply');

/** A container of the text that has not ended yet. */
interface Open {
  /** Its value; undefined within what a later field of the same name replaced. */
  value: Record<string | number, unknown> | undefined;
  /** The names that it has had, if it is an object. */
  names: Set<string> | null;
  /** The name or index that comes next. */
  at: string | number;
}

/** Looks at each part of the text once. @param value what the text is as JSON, which is changed */
function integersOnly(value: unknown, text: string, limits: JsonLimits): unknown {
  const whole = { value };
  const root: Open = { value: whole, names: null, at: 'value' };
  const open = [root];
  let container = root;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const first = text.charAt(at);
    if (first === ',') {
      values += 1;
      if (typeof container.at === 'number') container.at += 1;
    } else if (first === '[' || first === '{') {
      if (open.length > MAX_DEPTH) throw nestedTooDeeply();
      values += 1;
      const inside = container.value?.[container.at] as Open['value'];
      container = {
        value: inside,
        ...(first === '[' ? { names: null, at: 0 } : { names: new Set(), at: '' }),
      };
      open.push(container);
    } else if (first === ']' || first === '}') {
      open.pop();
      container = open.at(-1) ?? root;
    } else if (first === '"') {
      const end = endOf(ANY_STRING, text, at);
      if (container.names !== null && text.charAt(skipSpace(text, end)) === ':') {
        const written = text.slice(at + 1, end - 1);
        const name: string = written.includes('\\') ? JSON.parse(text.slice(at, end)) : written;
        if (container.names.has(name)) throw ApiError.ofField('body', 'body must not contain a field twice');
        container.names.add(name);
        if (container.names.size > limits.fields)
          throw ApiError.ofField('body', `an object of the body must have at most ${limits.fields} fields`);
        container.at = name;
      }
      at = end - 1;
    } else if (first === '-' || isDigit(first)) {
      const end = endOf(ANY_NUMBER, text, at);
      if (!INTEGER.test(text.slice(at, end)) && container.value) container.value[container.at] = Number.NaN;
      at = end - 1;
    }
    if (values > limits.values)
      throw ApiError.ofField('body', `body must have at most ${limits.values} values`);
  }
  return whole.value;
}

const isDigit = (character: string): boolean => character >= '0' && character <= '9';

const isSpace = (character: string): boolean =>
  character === ' ' || character === '\n' || character === '\r' || character === '\t';

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charAt(at))) at += 1;
  return at;
}

/** Where what a pattern describes ends that begins at `at`; `at` itself if it doesn't begin there. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function decodeText(bytes: Uint8Array): string {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw ApiError.ofField('body', 'body must be UTF-8');
  }
  if (text.startsWith('\ufeff')) throw ApiError.ofField('body', 'body must not begin with a byte order mark');
  return text;
}

/**
 * Where a text stops being JSON: the start of the first token that can't be there, or the text's end. V8's
 * messages won't do: some repeat the text, and some have no position.
 */
function errorOffset(text: string): number {
  /** Whether each container that has not ended is an object. */
  const open: boolean[] = [];
  let inObject = false;
  let expected: 'value' | 'value or ]' | 'name' | 'name or }' | 'colon' | 'comma or end' = 'value';
  for (let end = 0; ; ) {
    const at = skipSpace(text, end);
    const first = text.charAt(at);
    end = endOfToken(text, at);
    const isEnd =
      (first === ']' &&
        !inObject &&
        open.length > 0 &&
        (expected === 'value or ]' || expected === 'comma or end')) ||
      (first === '}' && inObject && (expected === 'name or }' || expected === 'comma or end'));
    if (isEnd) {
      open.pop();
      inObject = open.at(-1) ?? false;
      expected = 'comma or end';
    } else if (expected === 'colon' && first === ':') {
      expected = 'value';
    } else if (expected === 'comma or end' && first === ',' && open.length > 0) {
      expected = inObject ? 'name' : 'value';
    } else if ((expected === 'name' || expected === 'name or }') && first === '"' && end > at) {
      expected = 'colon';
    } else if ((expected === 'value' || expected === 'value or ]') && (first === '{' || first === '[')) {
      inObject = first === '{';
      open.push(inObject);
      expected = inObject ? 'name or }' : 'value or ]';
    } else if ((expected === 'value' || expected === 'value or ]') && end > at && !PUNCTUATION.has(first)) {
      expected = 'comma or end';
    } else {
      return at;
    }
  }
}

/** Where the token ends that begins at `at`; `at` itself if none does. */
function endOfToken(text: string, at: number): number {
  const first = text.charAt(at);
  if (PUNCTUATION.has(first)) return at + 1;
  if (first === '"') return endOf(STRING, text, at);
  return endOf(first === '-' || isDigit(first) ? NUMBER : WORD, text, at);
}
