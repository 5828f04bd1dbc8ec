import type { KeyRing } from '../../crypto/key-ring.ts';

/** A receiver may send an event back, names and all: what it answered lies sealed in the attempt's row, bound to it. */
export const sealAnswerStart = (ring: KeyRing, eventId: string, answerStart: string): Buffer =>
  ring.seal(answerStart, `${eventId}/answer`);

export const openAnswerStart = (ring: KeyRing, eventId: string, sealed: Buffer): string =>
  ring.open(sealed, `${eventId}/answer`);
