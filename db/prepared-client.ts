import { createHash } from 'node:crypto';
import { ReleasingClient } from './releasing-client.ts';

const names = new Map<string, string>();

/**
 * A `pg` client that prepares every parametrised statement once per connection and then only binds it: the planner's
 * work is paid for once. The name is a digest of the text, so equal statements share it.
 */
export class PreparedClient extends ReleasingClient {
  // biome-ignore lint/suspicious/noExplicitAny: pg declares nine overloads; this passes all of them through.
  override query(...args: any[]): any {
    const [text, values] = args;
    if (typeof text === 'string' && Array.isArray(values) && values.length > 0) {
      return super.query({ name: nameOf(text), text, values }, ...args.slice(2));
    }
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return (super.query as any)(...args);
  }
}

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 24);
    names.set(text, name);
  }
  return name;
}
