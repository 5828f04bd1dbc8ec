import { readdir, readFile } from 'node:fs/promises';
import Router from '@koa/router';
import { parse, Renderer, type Tokens } from 'marked';
import { ApiError } from '../../domain/api-error.ts';
import type { RequestState } from '../http/log-request.ts';
import { PAGE_POLICY } from '../openapi/reference.ts';

const PAGES = new URL('../../docs/partners/', import.meta.url);
const STYLESHEET = new URL('guide.css', import.meta.url);

/**
 * The partner guide (docs/partners/README.md) as `GET /guide`, and its other pages as `GET /guide/<page>`.
 */
export function guide(): Router<RequestState> {
  const router = new Router<RequestState>();
  router.get('/guide/guide.css', async (ctx) => {
    ctx.type = 'text/css';
    ctx.body = await readFile(STYLESHEET, 'utf8');
  });
  router.get(['/guide', '/guide/:page'], async (ctx) => {
    pages ??= renderPages();
    const html = (await pages).get(ctx.path.replace(/\/$/, ''));
    if (html === undefined) throw new ApiError('not_found');
    ctx.set('Content-Security-Policy', PAGE_POLICY);
    ctx.type = 'text/html';
    ctx.body = html;
  });
  return router;
}

/** Every page, by its path. Rendered for the first reader: a process without one does not pay for it. */
let pages: ReturnType<typeof renderPages> | undefined;

async function renderPages(): Promise<Map<string, string>> {
  const renderer = new PageRenderer();
  const names = (await readdir(PAGES)).filter((name) => name.endsWith('.md'));
  const rendered = names.map(async (name): Promise<[string, string]> => {
    const markdown = await readFile(new URL(name, PAGES), 'utf8');
    const [, title = ''] = /^# (.*)$/m.exec(markdown) ?? [];
    return [pathOf(name), page(title, parse(markdown, { renderer, async: false }))];
  });
  return new Map(await Promise.all(rendered));
}

function pathOf(name: string): string {
  return name === 'README.md' ? '/guide' : `/guide/${name.slice(0, -'.md'.length)}`;
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title} · Virtual Card Issuing Partner API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/guide/guide.css"></head>
<body><nav aria-label="Documentation"><a href="/guide">Partner guide</a><a href="/docs">API reference</a></nav>
<main>
${content}</main></body></html>
`;
}

class PageRenderer extends Renderer {
  override heading({ tokens, depth, text }: Tokens.Heading): string {
    return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
  }

  override link(token: Tokens.Link): string {
    const [, name, anchor = ''] = /^([\w-]+\.md)(#.*)?$/.exec(token.href) ?? [];
    if (name !== undefined) return super.link({ ...token, href: pathOf(name) + anchor });
    // A partner does not have the repository's other files.
    return /^(https:|#)/.test(token.href) ? super.link(token) : this.parser.parseInline(token.tokens);
  }

  /** Pictures are for readers of the repository. */
  override image(): string {
    return '';
  }

  override table(token: Tokens.Table): string {
    return `<div class="table">${super.table(token)}</div>\n`;
  }
}

/** As GitHub makes it, where the same links have to work. */
function anchorOf(heading: string): string {
  const kept = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, '');
  return kept.replaceAll(' ', '-');
}
