import { ERRORS, type ErrorCode } from './error-catalogue.ts';

export interface FieldIssue {
  /** Where the problem is: a body field, a query parameter or a header. */
  path: string;
  message: string;
}

export interface ApiErrorDetail {
  /** Replaces the catalogue's message. */
  message?: string;
  issues?: FieldIssue[];
  /** For 429: when trying again makes sense. */
  retryAfterSeconds?: number;
  /** For 405: the methods the path has. */
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

  static ofFields(issues: FieldIssue[]): ApiError {
    const message = issues.map((issue) => issue.message).join('; ');
    return new ApiError('validation_failed', { message, issues });
  }

  static ofField(path: string, message: string): ApiError {
    return ApiError.ofFields([{ path, message }]);
  }
}
