import { ApiError } from '../../domain/api-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * The JSON value of a body. A number that isn't written as an integer comes out as NaN, so that no schema takes 1e400,
 * 1.0 or a fraction that rounds to an integer for an amount of cents. A name that is there twice is refused: parsers
 * disagree about which of two amounts counts.
 * @throws ApiError `validation_failed`
 */
export function parseJson(bytes: Buffer): unknown {
  try {
    return parse(utf8.decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) {
      throw ApiError.ofField('body', 'body must be valid JSON in UTF-8, without a byte order mark');
    }
    if (error instanceof RangeError) throw ApiError.ofField('body', 'body is nested too deeply');
    throw error;
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
      // The number as it was written: part of the language since ES2025.
      return typeof value === 'number' && !/^-?\d+$/.test(context?.source ?? '') ? Number.NaN : value;
    },
  );
  const names = text.replace(STRINGS, '').split(':').length - 1;
  if (names > members) throw ApiError.ofField('body', 'body must not contain a field twice');
  return value;
}
