import { z } from 'zod';

const Port = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port number')
  .transform(Number)
  .pipe(z.number().min(1).max(65_535));

const Environment = z.object({
  DATA_DIR: z.string().default('.data'),
  HOST: z
    .enum(
      ['127.0.0.1', 'localhost', '::1'],
      'npm start listens on loopback only; `npm run api` takes any address',
    )
    .default('127.0.0.1'),
  PORT: Port.default(3000),
  POSTGRES_PORT: Port.optional(),
  TEMPORAL_PORT: Port.optional(),
  TEMPORAL_UI_PORT: Port.optional(),
  TEMPORAL_ADDRESS: z.string().optional(),
  TEMPORAL_NAMESPACE: z.string().default('default'),
  TEMPORAL_CLI: z.string().optional(),
  DATABASE_URL: z.string().optional(),
  ENCRYPTION_KEYS: z.string().optional(),
});

/** The environment as the local stack reads it (operations.md, "Configuration"). */
export type Settings = z.infer<typeof Environment>;

/** @throws Error naming every problem; an empty value counts as unset. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const parsed = Environment.safeParse(
    Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')),
  );
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(
    `The configuration is not usable. Correct these environment variables:\n${problems.join('\n')}`,
  );
}
