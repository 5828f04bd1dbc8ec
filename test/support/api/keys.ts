import { createApiKey } from '../../../accounts/api-keys.ts';
import type { Scope } from '../../../accounts/scope-rules.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { TestPartner, TestStack } from '../stack.ts';

/** The same account, which uses a new key in one of its modes. */
export async function withNewKey(
  stack: TestStack,
  partner: TestPartner,
  { mode = 'test', scopes }: { mode?: Mode; scopes?: readonly Scope[] } = {},
): Promise<TestPartner & { keyId: string }> {
  const wanted = { partnerId: partner.id, mode, name: null, ...(scopes && { scopes }) };
  const { id, key } = await createApiKey(stack.operator, wanted);
  return { ...stack.partnerHere({ ...partner, keys: { ...partner.keys, [mode]: key } }), keyId: id };
}
