import assert from 'node:assert/strict';
import { changedFields } from '../../../workbench/changed-fields.ts';

describe('what a form of the workbench changes', () => {
  for (const [what, before, after, changed] of [
    ['nothing', { label: 'a', types: ['x'] }, { label: 'a', types: ['x'] }, null],
    ['nothing that was not there either', {}, { label: null }, null],
    ['a field', { label: 'a', email: null }, { label: 'b', email: null }, { label: 'b' }],
    ['a field that is emptied', { label: 'a' }, { label: null }, { label: null }],
    ['a field that was not there', {}, { team: 'ads' }, { team: 'ads' }],
    ['an item of a list', { types: ['x'] }, { types: ['x', 'y'] }, { types: ['x', 'y'] }],
  ] as const)
    it(`is ${what}`, () => assert.deepEqual(changedFields<object>(before, after), changed));
});
