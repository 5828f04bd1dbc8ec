import fc from 'fast-check';
import { type Script, type ScriptSize, scripts } from './script.ts';

/** The same script for the same seed. How its clients' requests interleave is up to the machine. */
export function drawScript(seed: number, size: ScriptSize): Script & { seed: number } {
  const [script] = fc.sample(scripts(size), { seed, numRuns: 1 });
  if (script === undefined) throw new Error('one script was asked for');
  return { ...script, seed };
}
