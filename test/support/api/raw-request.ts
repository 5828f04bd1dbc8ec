import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestStack } from '../stack.ts';

/**
 * Sends bytes as they are and reads the one answer that comes until the server closes the connection: what no HTTP
 * client would send. Ask for `Connection: close`, or send what makes the server close.
 */
export async function sendRaw(stack: TestStack, ...parts: (string | Buffer)[]) {
  const socket = connect(stack.config.port, stack.config.host);
  await once(socket, 'connect');
  // The server may answer and close before all has been sent.
  socket.on('error', () => {});
  for (const part of parts) socket.write(part);
  const received = await text(socket);
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') };
}

/** A request with these header lines, which may be repeated, and a body. */
export function rawRequest(
  stack: TestStack,
  method: string,
  path: string,
  headers: readonly (readonly [string, string])[],
  body = '',
) {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return sendRaw(
    stack,
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines}${length}\r\n${body}`,
  );
}
