import type { Declaration } from '../http/route.ts';

/** One of an operation's samples, as `x-codeSamples` has it. */
interface CodeSample {
  lang: 'Shell' | 'TypeScript' | 'Python';
  label: string;
  source: string;
}

/**
 * How to call an operation with curl, our TypeScript client and Python. Each reads CARD_ISSUING_BASE_URL and
 * CARD_ISSUING_API_KEY, and can be run as it is.
 * @param path with example values for its parameters
 * @param pathValues these values, in their order
 */
export function codeSamples(route: Declaration, path: string, pathValues: readonly string[]): CodeSample[] {
  const query = Object.entries(route.examples.query ?? {}).map(([name, value]) => `${name}=${value}`);
  const address = query.length === 0 ? path : `${path}?${query.join('&')}`;
  return [
    { lang: 'Shell', label: 'curl', source: curlSample(route, address) },
    { lang: 'TypeScript', label: 'TypeScript', source: typeScriptSample(route, pathValues) },
    { lang: 'Python', label: 'Python', source: pythonSample(route, address) },
  ];
}

const EXAMPLE_KEY = 'order-4711';

function curlSample({ method, body, examples, idempotencyKey }: Declaration, path: string): string {
  const lines = [
    `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$CARD_ISSUING_BASE_URL${path}"`,
    '-H "Authorization: Bearer $CARD_ISSUING_API_KEY"',
  ];
  if (idempotencyKey === 'required') lines.push(`-H "Idempotency-Key: ${EXAMPLE_KEY}"`);
  if (body !== undefined) {
    lines.push('-H "Content-Type: application/json"');
    lines.push(
      `-d '${JSON.stringify(examples.body ?? {}, null, 2)
        .replaceAll('\n', '\n  ')
        .replaceAll("'", "'\\''")}'`,
    );
  }
  return lines.join(' \\\n  ');
}

function typeScriptSample(route: Declaration, pathValues: readonly string[]): string {
  const { operationId, body, bodyIsOptional, examples, idempotencyKey } = route;
  const values = pathValues.map((value) => `'${value}'`);
  if (body !== undefined && !(bodyIsOptional && examples.body === undefined))
    values.push(objectLiteral(examples.body ?? {}));
  if (examples.query !== undefined) values.push(objectLiteral(examples.query));
  if (idempotencyKey === 'required') values.push(`{ idempotencyKey: '${EXAMPLE_KEY}' }`);
  const call = `client.${operationId}(${values.join(', ')})`;
  return [
    "import { CardIssuing } from 'virtual-card-issuing-client';",
    '',
    'const client = new CardIssuing({',
    "  apiKey: process.env.CARD_ISSUING_API_KEY ?? '',",
    "  baseUrl: process.env.CARD_ISSUING_BASE_URL ?? '',",
    '});',
    ...useOfResult(route, call),
  ].join('\n');
}

function useOfResult({ responses, operationId, contentType }: Declaration, call: string): string[] {
  if (contentType !== undefined)
    return [`for await (const part of await ${call}) {`, '  process.stdout.write(part);', '}'];
  if (operationId.endsWith('.list'))
    return [`for await (const one of ${call}) {`, '  console.log(one);', '}'];
  if (Object.keys(responses).join() === '204') return [`await ${call};`];
  return [`const result = await ${call};`, 'console.log(result);'];
}

/** As a person writes it: single quotes, and no quotes around names. */
function objectLiteral(value: unknown, indent = ''): string {
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map((one) => objectLiteral(one, indent)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const deeper = `${indent}  `;
  const fields = Object.entries(value).map(
    ([name, one]) => `${deeper}${/^\w+$/.test(name) ? name : `'${name}'`}: ${objectLiteral(one, deeper)},\n`,
  );
  return fields.length === 0 ? '{}' : `{\n${fields.join('')}${indent}}`;
}

function pythonSample(route: Declaration, path: string): string {
  const { method, body, examples, idempotencyKey, responses, contentType } = route;
  const result = contentType === undefined ? 'response.json()' : 'response.text';
  const headers = [`"Authorization": f"Bearer {os.environ['CARD_ISSUING_API_KEY']}",`];
  if (idempotencyKey === 'required') headers.push(`"Idempotency-Key": "${EXAMPLE_KEY}",`);
  return [
    'import os',
    '',
    'import requests',
    '',
    `response = requests.${method}(`,
    `    os.environ["CARD_ISSUING_BASE_URL"] + "${path}",`,
    '    headers={',
    ...headers.map((header) => `        ${header}`),
    '    },',
    ...(body === undefined ? [] : [`    json=${pythonLiteral(examples.body ?? {}, '    ')},`]),
    '    timeout=30,',
    ')',
    'response.raise_for_status()',
    ...(Object.keys(responses).join() === '204' ? [] : [`print(${result})`]),
  ].join('\n');
}

function pythonLiteral(value: unknown, indent: string): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map((one) => pythonLiteral(one, indent)).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const deeper = `${indent}    `;
  const fields = Object.entries(value).map(
    ([name, one]) => `${deeper}${JSON.stringify(name)}: ${pythonLiteral(one, deeper)},\n`,
  );
  return fields.length === 0 ? '{}' : `{\n${fields.join('')}${indent}}`;
}
