import type { Mode } from '../../../domain/mode.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { setEndpoint } from '../../../webhooks/endpoints.ts';
import type { TestCommands } from '../commands/open-commands.ts';

/** A new account with one endpoint and this balance, where there is no API to ask for it. */
export async function accountWithEndpoint(
  commands: TestCommands,
  options: { mode?: Mode; url?: string; amountCents?: number } = {},
): Promise<{ partnerId: string; endpointId: string }> {
  const { mode = 'test', url = 'https://hooks.example.com/', amountCents = 1 } = options;
  const partnerId = await commands.createFundedPartner(amountCents);
  const author = { ...commands.context, actor: 'test' };
  const { endpoints } = await setEndpoint(author, { partnerId, modes: [mode], url });
  return { partnerId, endpointId: endpoints[0]?.id ?? '' };
}

/** Writes events of an account, whose trigger queues their deliveries. @returns their ids */
export async function insertEvents(
  commands: TestCommands,
  partnerId: string,
  count: number,
  mode: Mode = 'test',
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('evt'));
  await commands.owner.query(
    `INSERT INTO event (id, partner_id, mode, type, body, created_at)
     SELECT id, $1, $2, 'ping', '{}', now() FROM unnest($3::text[]) id`,
    [partnerId, mode, ids],
  );
  return ids;
}
