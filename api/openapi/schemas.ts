import { z } from 'zod';

/**
 * The JSON Schemas of an OpenAPI document. A schema with an id goes into its components once and is
 * referenced.
 */
export interface Schemas {
  /** @param io whether the value is sent to the service or by it */
  of(schema: z.ZodType, io: 'input' | 'output'): object;
  /** The schemas referenced so far, by name. */
  components(): Record<string, object>;
}

const REFERENCE = '#/components/schemas/';

export function createSchemas(): Schemas {
  const named = new Map<string, object>();
  return {
    of(schema, io) {
      // Wrapped in an array, because Zod only references schemas that are nested in another.
      const { items, $defs = {} } = z.toJSONSchema(z.array(schema), {
        io,
        unrepresentable: 'any',
        override: ({ zodSchema, jsonSchema }) => {
          // `format` says enough, and the pattern has 300 characters.
          if (io === 'output' && zodSchema instanceof z.ZodISODateTime) delete jsonSchema.pattern;
          if (zodSchema instanceof z.ZodDiscriminatedUnion)
            jsonSchema.discriminator = describeDiscriminator(zodSchema);
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

/** OpenAPI's `discriminator`, which tells generators how to choose among a union's schemas. */
function describeDiscriminator({ def: { discriminator, options } }: z.ZodDiscriminatedUnion): object {
  const mapping = options.flatMap((option) => {
    const { id } = z.globalRegistry.get(option) ?? {};
    return [...(option._zod.propValues?.[discriminator] ?? [])].map((value) => [value, REFERENCE + id]);
  });
  return { propertyName: discriminator, mapping: Object.fromEntries(mapping) };
}

function withReferences<T extends object>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', `"$ref":"${REFERENCE}`));
}
