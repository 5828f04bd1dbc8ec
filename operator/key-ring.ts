import { resealEverything } from './reseal.ts';
import { type Noun, verb } from './verbs.ts';

const PROGRESS_EVERY_MS = 2_000;

export const keyRingNoun: Noun = {
  reseal: verb({
    about:
      'encrypt everything again with the first key of ENCRYPTION_KEYS, and say which other keys can be removed; exits with 1 if none can',
    examples: ['', '--json'],
    async run(_, { session, err }) {
      let shownAt = Date.now();
      const report = await resealEverything(await session.withKeys(), ({ place, rows, resealed }) => {
        if (Date.now() < shownAt + PROGRESS_EVERY_MS) return;
        shownAt = Date.now();
        err(`${place.replaceAll('_', ' ')}: ${rows} rows checked, ${resealed} encrypted again\n`);
      });
      const { currentKey, places, unusedKeys, stillSealing, missingKeys } = report;
      return {
        value: {
          current_key: currentKey,
          resealed: Object.fromEntries(places.map(({ place, resealed }) => [place, resealed])),
          left: places.reduce((sum, { left }) => sum + left, 0),
          unreadable: places.reduce((sum, { unreadable }) => sum + unreadable, 0),
          removable_keys: unusedKeys,
          still_used_keys: stillSealing,
          missing_keys: missingKeys,
        },
        note: noteOn(report),
        failed: stillSealing.length > 0 || places.some(({ left, unreadable }) => left + unreadable > 0),
      };
    },
  }),
};

function noteOn({
  unusedKeys,
  stillSealing,
  missingKeys,
  places,
}: Awaited<ReturnType<typeof resealEverything>>): string {
  if (missingKeys.length > 0) {
    return `Some rows need ${missingKeys.join(', ')}, which is not in ENCRYPTION_KEYS: add it back behind the others, then run this again.`;
  }
  if (stillSealing.length > 0) {
    return `A process still encrypts with ${stillSealing.join(', ')}: restart every API and worker with the new ENCRYPTION_KEYS, then run this again.`;
  }
  if (places.some(({ unreadable }) => unreadable > 0))
    return 'Some values are damaged, and stay as they are.';
  if (places.some(({ left }) => left > 0)) return 'Some rows were in use: run this again.';
  if (unusedKeys.length === 0) return 'Everything is encrypted with the only key there is.';
  return `Nothing is encrypted with ${unusedKeys.join(', ')} any more: remove it from ENCRYPTION_KEYS, and restart every API and worker.`;
}
