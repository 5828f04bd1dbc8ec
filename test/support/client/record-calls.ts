import type { CardIssuing } from '../../../client/index.ts';

/** The same client; what is called of its resources is noted, as `cards.create`. `webhooks`, which asks nobody, is not. */
export function recordCalls(client: CardIssuing, called: Set<string>): CardIssuing {
  return new Proxy(client, {
    get(_, name: string) {
      const resource: unknown = Reflect.get(client, name);
      if (typeof resource !== 'object' || resource === null || name === 'webhooks') return resource;
      return new Proxy(resource, {
        get(_resource, method: string) {
          called.add(`${name}.${method}`);
          return Reflect.get(resource, method).bind(resource);
        },
      });
    },
  });
}
