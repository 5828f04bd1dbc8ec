import { z } from 'zod';

/** JSON Schemas of an OpenAPI document: those that have an id are in its components, once, and referred to. */
export interface Schemas {
  /** @param io what is sent to the service, or what it answers */
  of(schema: z.ZodType, io: 'input' | 'output'): object;
  /** Those that were referred to so far, by name. */
  components(): Record<string, object>;
}

const REFERENCE = '#/components/schemas/';

export function createSchemas(): Schemas {
  const named = new Map<string, object>();
  return {
    of(schema, io) {
      // In an array, since only what is inside of something else is referred to.
      const { items, $defs = {} } = z.toJSONSchema(z.array(schema), {
        ...{ io, unrepresentable: 'any' },
        override: ({ zodSchema, jsonSchema }) => {
          // The format says it, and the pattern has 300 characters.
          if (io === 'output' && zodSchema instanceof z.ZodISODateTime) delete jsonSchema.pattern;
        },
      });
      for (const [name, definition] of Object.entries(withReferences($defs))) {
        const known = named.get(name);
        if (known !== undefined && JSON.stringify(known) !== JSON.stringify(definition)) {
          throw new Error(`two schemas of the API document are called ${name}`);
        }
        named.set(name, definition as object);
      }
      return withReferences(items as object);
    },
    components: () => Object.fromEntries([...named].sort(([a], [b]) => a.localeCompare(b, 'en'))),
  };
}

function withReferences<T extends object>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', `"$ref":"${REFERENCE}`));
}
