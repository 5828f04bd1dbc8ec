import { z } from 'zod';
import { splitList } from './values.ts';

/**
 * What an API process can serve: the partners' requests, the workbench's pages, the reveals of card details,
 * the card network's own requests.
 */
export const API_PARTS = ['partner', 'workbench', 'reveal', 'network'] as const;

export type ApiPart = (typeof API_PARTS)[number];

/** API_PARTS: `all`, or some of them, comma-separated. */
export const ApiParts = z
  .string()
  .transform((text) => (text === 'all' ? [...API_PARTS] : splitList(text)))
  .pipe(z.array(z.enum(API_PARTS, `must be all, or of ${API_PARTS.join(', ')}, comma-separated`)))
  .refine((parts) => new Set(parts).size === parts.length, 'must not name a part twice')
  .readonly()
  .default([...API_PARTS]);
