import assert from 'node:assert/strict';
import { NodeProblem } from '../../../../deposits/tron/node-health.ts';
import { isFarAhead } from '../../../../deposits/tron/node-order.ts';

/** A node with that height, whose newest block is that old. */
const heard = (number: number, ageSeconds: number, problem: NodeProblem | null = null) => ({
  newest: { number, time: new Date(Date.now() - ageSeconds * 1_000) },
  health: { isSound: problem === null, problem },
});
const unheard = { newest: null, health: { isSound: true, problem: null } };
const tooFarAhead = new NodeProblem('contradicting', 'too_far_ahead');
const timeout = new NodeProblem('failing', 'timeout');

/** Others than a node at block 10,000, of which two have to say that this is too far ahead. */
const CASES: [string, Parameters<typeof isFarAhead>[1], boolean][] = [
  ['two others are far below it', [heard(9_000, 60), heard(9_000, 60)], true],
  ['one of them may be 1,000 blocks behind by now', [heard(9_000, 60), heard(9_000, 1_000)], false],
  ['only one other is heard', [heard(9_000, 60), unheard], false],
  ['only one other can be believed', [heard(9_000, 60), heard(9_000, 60, timeout)], false],
  ['one that is too far ahead as well has as many', [heard(9_000, 60), heard(9_999, 60, tooFarAhead)], false],
  ['one of the others is in the future', [heard(9_000, 60), heard(9_000, -3_600)], false],
];

describe('a node with more blocks than there can be', () => {
  for (const [what, others, isFar] of CASES)
    it(`is ${isFar ? '' : 'not '}seen where ${what}`, () => {
      const node = heard(10_000, 60);
      assert.equal(isFarAhead(node, [node, ...others], 2), isFar);
    });
});
