import type { NodeView } from './node-view.ts';

/** `wallet` shows blocks up to the head, `walletsolidity` up to the newest solid one. */
export type Api = 'wallet' | 'walletsolidity';

type Params = Record<string, unknown>;

const METHODS: Record<string, (view: NodeView, params: Params, isSolid: boolean) => string> = {
  getnowblock: (view, _params, isSolid) => view.blockJson(view.newestNumber(isSolid), isSolid) ?? '{}',
  getblockbynum: (view, params, isSolid) => view.blockJson(wholeNumber(params.num), isSolid) ?? '{}',
  getblockbyid: (view, { value }, isSolid) => blockById(view, String(value), isSolid, true),
  getblock: (view, { id_or_num: asked, detail }, isSolid) => {
    const isDetailed = detail === true || detail === 'true';
    if (isId(asked)) return blockById(view, asked, isSolid, isDetailed);
    const number = asked === undefined || asked === '' ? view.newestNumber(isSolid) : wholeNumber(asked);
    return view.blockJson(number, isSolid, isDetailed) ?? '{}';
  },
  gettransactioninfobyblocknum: (view, params, isSolid) => {
    const number = wholeNumber(params.num);
    return number > 0 ? view.infosJson(number, isSolid) : '{}';
  },
  gettransactioninfobyid: (view, { value }, isSolid) => {
    const found = view.find(String(value), isSolid);
    return found === null ? '{}' : found.transaction.infoJson(found.number, found.timeMs);
  },
  gettransactionbyid: (view, { value }, isSolid) =>
    view.find(String(value), isSolid)?.transaction.json ?? '{}',
};

/**
 * @returns the body of a 200; undefined if there is no such path. As with java-tron, an error is a 200 too.
 */
export function answerCall(
  view: NodeView,
  apis: readonly Api[],
  { method, url, body }: { method: string | undefined; url: URL; body: string },
): string | undefined {
  const { pathname, searchParams } = url;
  const [, api, name = ''] = pathname.split('/');
  const answer = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  if (answer === undefined || !apis.some((served) => served === api)) return undefined;
  try {
    const params: Params = method === 'GET' ? Object.fromEntries(searchParams) : JSON.parse(body || '{}');
    return answer(view, params, api === 'walletsolidity');
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    return JSON.stringify({
      Error: `class org.tron.core.services.http.JsonFormat$ParseException : ${error.message}`,
    });
  }
}

/** As in protobuf, a missing number is 0. */
function wholeNumber(value: unknown): number {
  const number = Number(value ?? 0);
  if (!Number.isSafeInteger(number)) throw new RangeError(`Couldn't parse integer: ${value}`);
  return number;
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value);
}

/** A block's id begins with its number. */
function blockById(view: NodeView, id: string, isSolid: boolean, isDetailed: boolean): string {
  const json = isId(id) ? view.blockJson(wholeNumber(`0x${id.slice(0, 16)}`), isSolid, isDetailed) : null;
  return json?.startsWith(`{"blockID":"${id.toLowerCase()}"`) ? json : '{}';
}
