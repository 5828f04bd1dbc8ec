import { NodeProblem } from './node-health.ts';

const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const;
const [QUOTE, BACKSLASH, COMMA, SPACE] = [0x22, 0x5c, 0x2c, 0x20] as const;

/** An item of a list, or a whole answer that is no list. */
interface Part {
  text: string;
  isItem: boolean;
}

/**
 * The items of a JSON list as they arrive, so that only one of them is in memory, however long the list is.
 * Whether an item is JSON itself is for its reader to find out.
 * @throws NodeProblem if the list doesn't end, or a part has more than `maxPartBytes`
 */
export async function* splitList(chunks: AsyncIterable<Buffer>, maxPartBytes: number): AsyncGenerator<Part> {
  const list = new ListEnds();
  let isList: boolean | null = null;
  let part: Buffer[] = [];
  let partBytes = 0;
  const keep = (bytes: Buffer) => {
    partBytes += bytes.length;
    if (partBytes > maxPartBytes) throw new NodeProblem('failing', 'too_large');
    part.push(bytes);
  };
  const take = (): string => {
    const text = Buffer.concat(part).toString();
    [part, partBytes] = [[], 0];
    return text;
  };
  for await (const chunk of chunks) {
    const first = chunk.find((byte) => byte > SPACE);
    if (first !== undefined) isList ??= first === OPEN_LIST;
    let from = 0;
    for (const end of isList === true ? list.read(chunk) : []) {
      keep(chunk.subarray(from, end));
      from = end + 1;
      const text = take();
      // There is nothing before the list, nor in an empty one.
      if (text.trim() !== '') yield { text, isItem: true };
    }
    keep(chunk.subarray(from));
  }
  const rest = take();
  if (isList !== true) yield { text: rest, isItem: false };
  else if (!list.hasEnded || rest.trim() !== '') throw notJson();
}

/** Finds where the items of a list end. */
class ListEnds {
  hasEnded = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** @returns the places of the list's brackets, and of the commas between its items */
  read(chunk: Buffer): number[] {
    // A loop over local variables takes a third of the time.
    let [depth, isInString, isEscaped] = [this.#depth, this.#isInString, this.#isEscaped];
    const ends: number[] = [];
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isInString = false;
      } else if (byte === QUOTE) isInString = true;
      else if (byte === COMMA && depth === 1) ends.push(at);
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        if (this.hasEnded) throw notJson();
        if (depth++ === 0) ends.push(at);
      } else if ((byte === CLOSE_LIST || byte === CLOSE_OBJECT) && --depth === 0) {
        ends.push(at);
        this.hasEnded = true;
      }
    }
    [this.#depth, this.#isInString, this.#isEscaped] = [depth, isInString, isEscaped];
    return ends;
  }
}

const notJson = () => new NodeProblem('failing', 'not_json');
