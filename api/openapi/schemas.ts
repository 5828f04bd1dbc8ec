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
          if (zodSchema instanceof z.ZodDiscriminatedUnion)
            jsonSchema.discriminator = discriminatorOf(zodSchema);
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

/** Which of a union's schemas a value is of, for readers that go by more than the schemas themselves. */
function discriminatorOf({ def: { discriminator, options } }: z.ZodDiscriminatedUnion): object {
  const mapping = options.flatMap((option) => {
    const { id } = z.globalRegistry.get(option) ?? {};
    return [...(option._zod.propValues?.[discriminator] ?? [])].map((value) => [value, REFERENCE + id]);
  });
  return { propertyName: discriminator, mapping: Object.fromEntries(mapping) };
}

function withReferences<T extends object>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', `"$ref":"${REFERENCE}`));
}
