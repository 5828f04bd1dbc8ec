import { ERRORS, type ErrorCode } from './error-catalogue.ts';

const MAX_IN_MESSAGE = 10;
/** How many fields an answer names. */
export const MAX_ISSUES = 50;

export interface FieldIssue {
  /** Where the problem is: a body field, a query parameter or a header. */
  path: string;
  message: string;
}

interface ApiErrorDetail {
  /** Replaces the catalogue's message. */
  message?: string;
  issues?: FieldIssue[];
  /** For 429: how long to wait before a retry. */
  retryAfterSeconds?: number;
  /** For an error about an Idempotency-Key: the operation that the key belongs to. */
  operationId?: string;
  /** For 405: the methods the path supports. */
  allow?: string;
}

/** An error a partner sees. Everything else that is thrown becomes `internal_error`. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly detail: ApiErrorDetail;

  constructor(code: ErrorCode, detail: ApiErrorDetail = {}) {
    super(detail.message ?? ERRORS[code].message);
    this.name = 'ApiError';
    this.code = code;
    this.detail = detail;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** `validation_failed` with one issue for each field, up to 50: the first one found. */
  static ofFields(found: readonly FieldIssue[]): ApiError {
    const byPath = new Map<string, FieldIssue>();
    for (const issue of found) {
      if (byPath.size === MAX_ISSUES) break;
      if (!byPath.has(issue.path)) byPath.set(issue.path, issue);
    }
    const issues = [...byPath.values()];
    const parts = issues.slice(0, MAX_IN_MESSAGE).map((issue) => issue.message);
    const more = issues.length - parts.length;
    if (more > 0) parts.push(`and ${more} more, see issues`);
    return new ApiError('validation_failed', { message: parts.join('; '), issues });
  }

  static ofField(path: string, message: string): ApiError {
    return ApiError.ofFields([{ path, message }]);
  }
}
