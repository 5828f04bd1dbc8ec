import type { Tenant } from '../domain/mode.ts';
import type { Author } from '../requests/operator-context.ts';

/** Who asks: a key of the account, and the request for the audit log. */
export interface AskingKey extends Tenant {
  keyId: string;
  requestId: string;
  clientAddress: string;
}

/** The author of a partner's change is the key, as in the record of reveals. */
export const authorOf = ({ partnerId, keyId, requestId, clientAddress }: AskingKey): Author => ({
  actor: `${partnerId}/${keyId}`,
  request: { requestId, clientAddress },
});
