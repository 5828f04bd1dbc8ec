import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { type Script, type ScriptSize, scripts } from './script.ts';

/** The seed in MODEL_SEED, or any. */
export function startSeed(): number {
  const { MODEL_SEED } = process.env;
  if (!MODEL_SEED) return randomInt(1_000_000_000);
  const seed = Number(MODEL_SEED);
  if (!Number.isSafeInteger(seed)) throw new Error(`MODEL_SEED is not an integer: ${MODEL_SEED}`);
  return seed;
}

/** The same script for the same seed. How its clients' requests interleave is up to the machine. */
export function drawScript(seed: number, size: ScriptSize): Script & { seed: number } {
  const [script] = fc.sample(scripts(size), { seed, numRuns: 1 });
  if (script === undefined) throw new Error('one script was asked for');
  return { ...script, seed };
}
