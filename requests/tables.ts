import { defineEntity, p } from '@mikro-orm/core';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import type { Mode } from '../domain/mode.ts';
import type { NetworkAnswer, OperationStatus } from './rules.ts';

/** A request with an idempotency key, and the response it got. */
export const IdempotencyClaimEntity = defineEntity({
  name: 'IdempotencyClaim',
  tableName: 'idempotency_claim',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    key: p.text().nullable(),
    operation: p.text().$type<ClaimOperation>(),
    fingerprint: p.blob(),
    /** Sealed. */
    request: p.blob().nullable(),
    requestId: p.text(),
    /** The API key that sent it, and from where. Null if an operator requested it. */
    apiKeyId: p.text().collation('C').nullable(),
    clientAddress: p.text().nullable(),
    leaseExpiresAt: p.datetime(),
    responseStatus: p.smallint().nullable(),
    /** Sealed. */
    responseBody: p.blob().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    /** What it creates: the id is chosen with the claim, and the row follows later. */
    resourceId: p.text().collation('C').nullable(),
    /** The card it is about. */
    cardId: p.text().collation('C').nullable(),
    /** Whether an operator asked for it, who has no key and no API key. */
    byOperator: p.boolean().default(false),
    sweepAfter: p.datetime().defaultRaw("'-infinity'"),
    sweepAttempts: p.integer().default(0),
    /**
     * Of the operation it stands for. Null: none, because it has no key, or a 400 as its response. Set by
     * triggers.
     */
    operationStatus: p.text().collation('C').$type<OperationStatus>().nullable(),
    /** When nothing was left to happen. Set by triggers. */
    completedAt: p.datetime().nullable(),
    /** What the card network was asked, if that took longer than the first time. */
    networkAsked: p.integer().default(0),
    networkLastAnswer: p.text().$type<NetworkAnswer>().nullable(),
    networkLastAskedAt: p.datetime().nullable(),
    networkNextAskAt: p.datetime().nullable(),
    networkDeadline: p.datetime().nullable(),
    /** Why its last answer was none. For operators. */
    networkProblem: p.text().nullable(),
  },
});

/** A request of a partner, and how it ended: nothing that a person typed. */
export const LoggedRequestEntity = defineEntity({
  name: 'LoggedRequest',
  tableName: 'logged_request',
  properties: {
    /** The Request-Id. */
    id: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().collation('C').$type<Mode>(),
    method: p.text(),
    /** The route's pattern with ids of ours. */
    path: p.text().collation('C'),
    status: p.smallint(),
    errorCode: p.text().nullable(),
    errorParam: p.text().nullable(),
    apiKeyId: p.text().collation('C'),
    address: p.text().nullable(),
    idempotencyKey: p.text().nullable(),
    operationId: p.text().collation('C').nullable(),
    durationMs: p.integer(),
  },
});

/** Who changed what, and when; written in the transaction of the change. */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entry',
  properties: {
    id: p.text().collation('C').primary(),
    at: p.datetime().defaultRaw('now()'),
    actor: p.text(),
    action: p.text(),
    subject: p.text(),
    detail: p.json().$type<Record<string, unknown>>(),
    // The database fills these in, whatever a statement says (docs/decisions/audit-chain.md).
    /** OPERATOR; null if it is not set. */
    operator: p.text().nullable(),
    /** The operating system's, of the command line. */
    osUser: p.text().nullable(),
    host: p.text().nullable(),
    databaseLogin: p.text().nullable(),
  },
});
