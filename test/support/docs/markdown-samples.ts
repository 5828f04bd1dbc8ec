import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const GUIDE = new URL('../../../docs/partners/', import.meta.url);

export interface Page {
  path: string;
  text: string;
}

/** The partner guide: its first page, and those that the first one lists, in their order. */
export async function readGuide(): Promise<Page[]> {
  const read = async (name: string) => ({
    path: `docs/partners/${name}`,
    text: await readFile(new URL(name, GUIDE), 'utf8'),
  });
  const first = await read('README.md');
  const listed = [...first.text.matchAll(/^\| \[[^\]]+\]\(([\w-]+\.md)\)/gm)].map(([, name = '']) => name);
  return [first, ...(await Promise.all(listed.map(read)))];
}

export interface Sample {
  language: string;
  text: string;
  line: number;
}

export function samplesOf(page: string): Sample[] {
  return [...page.matchAll(/^( *)```(\w+)\n(.*?)^\1```$/gms)].map(
    ({ 1: indent = '', 2: language = '', 3: text = '', index }) => ({
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      line: page.slice(0, index).split('\n').length,
    }),
  );
}

const ANY_NUMBER = ['duration_ms', 'exp_month', 'exp_year'];

/** Holds a response to its sample. Text with `…` stands for any that begins alike, and any time for any other. */
export function assertAsSampled(actual: unknown, sample: unknown, path = 'the response'): void {
  if (typeof sample === 'string' && typeof actual === 'string') {
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(sample)) assert.match(actual, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/, path);
    else if (sample.includes('…'))
      assert.ok(actual.startsWith(sample.replace('…', '')), `${path}: ${actual}`);
    else assert.equal(actual, sample, path);
  } else if (typeof sample === 'object' && sample !== null) {
    assert.ok(typeof actual === 'object' && actual !== null, `${path}: ${actual}`);
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(sample).sort(), path);
    for (const [name, value] of Object.entries(sample)) {
      const given: unknown = Reflect.get(actual, name);
      // A test clock is still advancing as long as something that is due by it has not begun.
      if (value === 'ready')
        assert.ok(given === 'ready' || given === 'advancing', `${path}.${name}: ${given}`);
      else if (ANY_NUMBER.includes(name)) assert.equal(typeof given, 'number', `${path}.${name}`);
      else assertAsSampled(given, value, `${path}.${name}`);
    }
  } else {
    assert.deepEqual(actual, sample, path);
  }
}
