import { ApiError } from './api-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const SPACE = /[ \t\n\r]*/y;
const TOKEN =
  /[[\]{},:]|"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[ !#-[\]-\uffff]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/**
 * The JSON value of a body. A number that isn't written as an integer becomes NaN, so that no schema accepts 1e400, 1.0 or
 * a fraction that rounds to an integer as an amount of cents. A field that is sent twice is refused: parsers disagree
 * about which of two amounts counts.
 * @throws ApiError `validation_failed`
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes);
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) {
      const lines = text.slice(0, errorOffset(text)).split('\n');
      const place = `line ${lines.length}, character ${(lines.at(-1) ?? '').length + 1}`;
      throw ApiError.ofField('body', `body must be valid JSON, and stops being so at ${place}`);
    }
    if (error instanceof RangeError) throw ApiError.ofField('body', 'body is nested too deeply');
    throw error;
  }
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
 * Where a text stops being JSON: the start of the first token that can't be there, or the text's end. V8's messages won't do:
 * some repeat the text, and some have no position.
 */
function errorOffset(text: string): number {
  const open: string[] = [];
  let expected: 'value' | 'value or ]' | 'name' | 'name or }' | 'colon' | 'comma or end' = 'value';
  for (let offset = 0; ; offset = TOKEN.lastIndex) {
    SPACE.lastIndex = offset;
    SPACE.exec(text);
    const start = SPACE.lastIndex;
    TOKEN.lastIndex = start;
    const token = TOKEN.exec(text)?.[0] ?? '';
    const isEnd =
      (token === ']' && open.at(-1) === '[' && (expected === 'value or ]' || expected === 'comma or end')) ||
      (token === '}' && open.at(-1) === '{' && (expected === 'name or }' || expected === 'comma or end'));
    if (isEnd) {
      open.pop();
      expected = 'comma or end';
    } else if (expected === 'colon' && token === ':') {
      expected = 'value';
    } else if (expected === 'comma or end' && token === ',' && open.length > 0) {
      expected = open.at(-1) === '{' ? 'name' : 'value';
    } else if ((expected === 'name' || expected === 'name or }') && token.startsWith('"')) {
      expected = 'colon';
    } else if ((expected === 'value' || expected === 'value or ]') && /^[^\]},:]/.test(token)) {
      if (token === '{' || token === '[') open.push(token);
      expected = token === '{' ? 'name or }' : token === '[' ? 'value or ]' : 'comma or end';
    } else {
      return start;
    }
  }
}

function parse(text: string): unknown {
  // The reviver also visits the whole value, as if that were a member of an object.
  let members = -1;
  const value: unknown = JSON.parse(
    text,
    function integersOnly(
      this: unknown,
      _key: string,
      value: unknown,
      context?: { source: string },
    ): unknown {
      if (!Array.isArray(this)) members += 1;
      // `source` is the number as it was written (ES2025).
      return typeof value === 'number' && !/^-?\d+$/.test(context?.source ?? '') ? Number.NaN : value;
    },
  );
  const names = text.replace(STRINGS, '').split(':').length - 1;
  if (names > members) throw ApiError.ofField('body', 'body must not contain a field twice');
  return value;
}
