import assert from 'node:assert/strict';
import { ActivityFailure, ApplicationFailure, defaultPayloadConverter } from '@temporalio/common';
import { z } from 'zod';
import { failureConverter } from '../../../../platform/temporal/failure-converter.ts';

const NAME = 'Zebulon Quagmire';

const convert = (error: unknown) => failureConverter.errorToFailure(error, defaultPayloadConverter);
const back = (error: unknown) => failureConverter.failureToError(convert(error), defaultPayloadConverter);
/** All that a history would have, its payloads decoded. */
const everything = (error: unknown): string =>
  JSON.stringify(convert(error), (_, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  );

/** As `pg` throws it: its message and detail quote the row. */
function databaseError(): Error {
  const message = `duplicate key value: (${NAME})`;
  const place = { code: '23505', table: 'card', constraint: 'card_pkey' };
  return Object.assign(new Error(message), { ...place, detail: `Key (name)=(${NAME})` });
}

describe("an error in a workflow's history", () => {
  const caught = (parse: () => unknown) => {
    try {
      return parse();
    } catch (error) {
      return error;
    }
  };
  const parseError = () => caught(() => JSON.parse('{"n": Quagmire'));
  for (const [what, thrown] of Object.entries<() => unknown>({
    'a database error': databaseError,
    'a parse error': parseError,
    'a value that is not as its schema says': () => caught(() => z.literal('x').parse(NAME)),
    'a parse error that the SDK wrapped': () =>
      ApplicationFailure.fromError(parseError(), {
        message: `Failed to parse activity args: ${parseError()}`,
      }),
    'an error whose cause quotes a row': () => new Error('it failed', { cause: databaseError() }),
    'a thrown object': () => ({ name: NAME }),
    'a thrown string': () => NAME,
  })) {
    it(`does not contain the text of ${what}`, () => {
      assert.ok(!everything(thrown()).includes(NAME), everything(thrown()));
      assert.ok(!everything(thrown()).includes('Quagmire'));
    });
  }

  it('says what kind of error was thrown', () => {
    assert.match(everything(databaseError()), /SQLSTATE 23505 card\.card_pkey/);
    assert.equal(back(new TypeError('x is not a function')).message, 'TypeError: x is not a function');
    assert.equal(back({ name: NAME }).message, 'NonError: a object was thrown');
  });

  it('keeps its message and stack trace in a payload, for the codec to encrypt', () => {
    const { message, stackTrace, encodedAttributes } = convert(new TypeError('x is not a function'));
    assert.equal(message, 'Encoded failure');
    assert.equal(stackTrace, '');
    assert.match(
      JSON.stringify(defaultPayloadConverter.fromPayload(encodedAttributes ?? {})),
      /failure-converter/,
    );
  });

  it('keeps the type and message of our own failures, and no stack trace', () => {
    const ours = ApplicationFailure.create({ type: 'NoCardNetwork', message: 'CARD_NETWORK is none' });
    assert.ok(!everything(ours).includes('failure-converter'));
    const read = back(ours);
    assert.ok(read instanceof ApplicationFailure);
    assert.deepEqual(
      [read.type, read.message, read.nonRetryable],
      ['NoCardNetwork', 'CARD_NETWORK is none', false],
    );
  });

  it('keeps when our own failure has to be tried again', () => {
    const ours = ApplicationFailure.create({ type: 'TurnMissed', message: 'later', nextRetryDelay: 2_500 });
    const { seconds, nanos } = convert(ours).applicationFailureInfo?.nextRetryDelay ?? {};
    assert.deepEqual([Number(seconds), nanos], [2, 500_000_000]);
  });

  it('passes on unchanged a failure that came from a history', () => {
    const cause = back(ApplicationFailure.create({ type: 'NoCardNetwork', message: 'CARD_NETWORK is none' }));
    const failed = new ActivityFailure('Activity task failed', 'requestIssuance', '1', 'TIMEOUT', 'w', cause);
    const read = back(failed);
    assert.equal((read.cause as Error).message, 'CARD_NETWORK is none');
  });
});
