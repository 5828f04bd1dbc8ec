import { distance } from 'fastest-levenshtein';
import { splitList } from './values.ts';

/** A variable that begins like this but is not known is probably misspelt. */
const OUR_PREFIX =
  /^(DATABASE_DIRECT_|READ_DATABASE_|ALLOW_OWNER_|ALLOW_PLAINTEXT_|CARD_|INCREASE_|LITHIC_|NETWORK_KEY_|PRODUCT_|ISSUANCE_|TOPUP_|WITHDRAWAL_|WEBHOOK_|TRON_|DEPOSIT_|WORKFLOW_|RATE_LIMIT_|STORED_|ACCOUNT_|ADJUSTMENT_|TRUSTED_|ENCRYPTION_|TASK_QUEUE_|OPERATIONS_|API_PART|DRAIN_|WORKER_|CODEC_|LEDGER_CHECK_)/;

/** Variables that the local stack reads, and those that the Temporal SDK reads itself. */
const ALSO_KNOWN = [
  'DATA_DIR',
  'POSTGRES_PORT',
  'TEMPORAL_PORT',
  'TEMPORAL_UI_PORT',
  'TEMPORAL_CLI',
  'TEMPORAL_API_KEY',
  'TEMPORAL_PROFILE',
  'TEMPORAL_CONFIG_FILE',
  'TEMPORAL_CODEC_ENDPOINT',
  'TEMPORAL_CODEC_AUTH',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  'TEMPORAL_TLS_SERVER_NAME',
  'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION',
  'ENCRYPTION_KEYS_COMMAND',
];

/**
 * Names variables that are set and probably meant for us, but are none of ours: they begin like ours, or are
 * a slip away from one that is not set. The environment is full of other programs' variables, so only close
 * names count, and IGNORED_VARIABLES lists those that are right as they are.
 * @param env without variables that are empty
 * @param ours the service's variables
 * @param inFiles those of them that can be given as files
 */
export function misspeltProblems(
  env: NodeJS.ProcessEnv,
  ours: ReadonlySet<string>,
  inFiles: readonly string[],
): string[] {
  const files = inFiles.map((name) => `${name}_FILE`);
  const known = new Set([...ours, ...ALSO_KNOWN, ...files]);
  const ignored = splitList(env.IGNORED_VARIABLES ?? '');
  const isSet = (name: string) => env[name] !== undefined || env[`${name}_FILE`] !== undefined;
  const missing = [...known].filter((name) => !isSet(name) && !isSet(name.replace(/_FILE$/, '')));
  const problems: string[] = [];
  for (const name of Object.keys(env)) {
    if (known.has(name) || ignored.includes(name)) continue;
    const near = missing.find((one) => isSlip(name, one));
    if (near === undefined && !OUR_PREFIX.test(name)) continue;
    const question = near === undefined ? 'is it misspelt?' : `did you mean ${near}?`;
    problems.push(
      `${name}: is not a known variable; ${question} If another program needs it, add its name to IGNORED_VARIABLES`,
    );
  }
  return problems;
}

/**
 * Whether somebody who meant `known` could have typed `name`. Two letters that changed places always count.
 * Short names are close to too many words, so only this counts there; in long ones, it and another slip do.
 */
function isSlip(name: string, known: string): boolean {
  if (isSwap(name, known)) return true;
  if (known.length < 8) return false;
  return distance(name.toUpperCase(), known) <= (known.length < 16 ? 1 : 3);
}

function isSwap(name: string, known: string): boolean {
  const at = [...known].findIndex((letter, index) => name[index] !== letter);
  const swapped = known.slice(0, at) + (known[at + 1] ?? '') + known[at] + known.slice(at + 2);
  return at >= 0 && name === swapped;
}
