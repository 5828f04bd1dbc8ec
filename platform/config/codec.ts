import { Environment } from './environment.ts';
import { jwksProblems } from './plaintext.ts';
import { parseEnvironment } from './read-environment.ts';

/** The configuration of the codec endpoint. */
export type CodecConfig = ReturnType<typeof readCodecConfig>;

export const CodecEnvironment = Environment.pick({
  CODEC_HOST: true,
  CODEC_PORT: true,
  CODEC_KEYS: true,
  CODEC_TOKENS: true,
  CODEC_ALLOWED_ORIGINS: true,
  CODEC_JWKS_URL: true,
  CODEC_JWT_ISSUER: true,
  CODEC_JWT_AUDIENCE: true,
  ALLOW_PLAINTEXT_JWKS: true,
  HOST: true,
  TEMPORAL_NAMESPACE: true,
  LOG_LEVEL: true,
}).required({ CODEC_KEYS: true });

/** @throws ConfigurationError */
export function readCodecConfig(env: NodeJS.ProcessEnv = process.env) {
  const { values } = parseEnvironment(CodecEnvironment, env, codecProblems);
  const { CODEC_JWKS_URL: jwksUrl, CODEC_JWT_ISSUER: issuer, CODEC_JWT_AUDIENCE: audience } = values;
  return {
    host: values.CODEC_HOST ?? values.HOST,
    port: values.CODEC_PORT,
    keys: values.CODEC_KEYS,
    /** Each lets its holder decrypt. There can be several, so that one can be replaced. */
    tokens: values.CODEC_TOKENS ?? [],
    /** The issuer whose access tokens are also accepted; null if there is none. */
    issuer: jwksUrl && issuer && audience ? { jwksUrl, issuer, audience } : null,
    /** The origins of the Temporal UIs that may use the endpoint. */
    allowedOrigins: values.CODEC_ALLOWED_ORIGINS,
    namespace: values.TEMPORAL_NAMESPACE,
    logLevel: values.LOG_LEVEL,
  };
}

function codecProblems(set: NodeJS.ProcessEnv): string[] {
  const issuerVariables = [set.CODEC_JWKS_URL, set.CODEC_JWT_ISSUER, set.CODEC_JWT_AUDIENCE];
  const given = issuerVariables.filter(Boolean).length;
  const problems: string[] = [];
  if (given !== 0 && given !== 3)
    problems.push('CODEC_JWKS_URL, CODEC_JWT_ISSUER, CODEC_JWT_AUDIENCE: set all three or none');
  if (given === 0 && !set.CODEC_TOKENS)
    problems.push(
      'CODEC_TOKENS: is required unless CODEC_JWKS_URL is set: without either, anybody could decrypt',
    );
  problems.push(...jwksProblems(set));
  return problems;
}
