import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { Mode } from '../../domain/mode.ts';

export const ApiKeyEntity = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.string().primary(),
    partnerId: p.string(),
    mode: p.string().$type<Mode>(),
    name: p.string().nullable(),
    /** Keyed hash of the key, which is nowhere else. */
    hash: p.blob().lazy(),
    hint: p.string(),
    createdAt: p.datetime().onCreate(() => new Date()),
    revokedAt: p.datetime().nullable(),
  },
});
export type ApiKey = InferEntity<typeof ApiKeyEntity>;
