/** Unprintable in a terminal, or refused by PostgreSQL. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

/** Bytes of a stranger as text that can be stored and shown: no controls but tab and newline, no half characters. */
export function readableText(bytes: Uint8Array): string {
  // As a stream, so that a character cut in two at the end is left out.
  const text = new TextDecoder().decode(bytes, { stream: true });
  return text
    .replaceAll('\r\n', '\n')
    .replace(CONTROLS, (control) => (control === '\n' || control === '\t' ? control : '\uFFFD'));
}
