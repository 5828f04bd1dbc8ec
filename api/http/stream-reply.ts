import { once } from 'node:events';
import type { RouterContext } from '@koa/router';
import type { RequestState } from './log-request.ts';

/** Only for the log; proxies use this status too. */
export const CLIENT_CLOSED_REQUEST = 499;

/** A body of any length. */
export interface StreamedReply {
  headers: Record<string, string>;
  limits: StreamLimits;
  /**
   * Sends the body. An error before the first part gets an ordinary response; after that, the transfer is
   * cut.
   */
  stream(transfer: Transfer): Promise<void>;
}

export interface Transfer {
  /** Resolves when the client has taken nearly all of what was sent; throws once the transfer is cut. */
  send(part: string): Promise<void>;
  /** Aborted when the transfer is cut: nobody needs the rest. */
  cut: AbortSignal;
  /** Cuts the transfer, because others wait for what it holds. */
  giveWay(): void;
}

export interface StreamLimits {
  /** How long a client may take for one part. */
  stallMs: number;
  /** How long the whole transfer may take. */
  maxMs: number;
}

/**
 * The transfer is cut: its client has left, takes nothing, takes too long, its key is refused, or others
 * wait.
 */
class TransferCut extends Error {
  override name = 'TransferCut';
  readonly by: 'client' | 'stall' | 'time' | 'key' | 'others';

  constructor(by: TransferCut['by']) {
    super(`the transfer was cut (${by})`);
    this.by = by;
  }
}

/**
 * Sends a streamed reply. If the transfer is cut, its connection ends without the end of the chunked body, so
 * that the client can tell.
 * @param refused aborted when the caller's key may do nothing any more
 */
export async function streamReply(
  ctx: RouterContext<RequestState>,
  reply: StreamedReply,
  refused: AbortSignal,
): Promise<void> {
  const { req, res, state } = ctx;
  const { headers, limits, stream } = reply;
  const cutting = new AbortController();
  const cut = (by: TransferCut['by']) => cutting.abort(new TransferCut(by));
  const clientLeft = () => cut('client');
  res.once('close', clientLeft);
  refused.addEventListener('abort', () => cut('key'));
  const tooLong = setTimeout(() => cut('time'), limits.maxMs);

  const begin = () => {
    ctx.status = 200;
    ctx.set(headers);
    ctx.respond = false;
  };
  const untilTaken = async (event: 'drain' | 'finish') => {
    const stall = setTimeout(() => cut('stall'), limits.stallMs);
    try {
      await once(res, event, { signal: cutting.signal });
    } finally {
      clearTimeout(stall);
    }
  };
  try {
    if (ctx.method === 'HEAD') {
      begin();
      res.end();
      return;
    }
    await stream({
      async send(part) {
        cutting.signal.throwIfAborted();
        if (!res.headersSent) begin();
        if (!res.write(part)) await untilTaken('drain');
      },
      cut: cutting.signal,
      giveWay: () => cut('others'),
    });
    res.end();
    if (!res.writableFinished) await untilTaken('finish');
  } catch (error) {
    const { reason } = cutting.signal;
    if (!cutting.signal.aborted) {
      if (!res.headersSent) throw error;
      ctx.app.emit('error', error, ctx);
    }
    state.logFields.cutBy = reason instanceof TransferCut ? reason.by : 'error';
    if (!res.headersSent) ctx.status = CLIENT_CLOSED_REQUEST;
    ctx.respond = false;
    // HTTP/1.0 has no chunks, so only a reset tells its clients that something is missing.
    if (req.httpVersion === '1.0') req.socket.resetAndDestroy();
    else req.socket.destroy();
  } finally {
    clearTimeout(tooLong);
    res.off('close', clientLeft);
  }
}
