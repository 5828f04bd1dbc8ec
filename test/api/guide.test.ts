import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { readGuide } from '../support/docs/markdown-samples.ts';
import { sharedStack } from '../support/shared-stack.ts';

const FOLDER = new URL('../../docs/partners/', import.meta.url);

describe('the partner guide', () => {
  let origin: string;
  before(async () => {
    const { config } = await sharedStack('api');
    origin = `http://${config.host}:${config.port}`;
  });

  const pathOf = (name: string) => (name === 'README.md' ? '/guide' : `/guide/${name.replace('.md', '')}`);
  const found = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, one = '']) => one);

  it('is served page by page, and every link in it leads somewhere', async () => {
    const pages = new Map<string, { html: string; ids: string[] }>();
    for (const name of await readdir(FOLDER)) {
      const response = await fetch(origin + pathOf(name));
      assert.equal(response.status, 200, name);
      assert.match(response.headers.get('content-type') ?? '', /^text\/html/);
      const html = await response.text();
      const ids = found(html, / id="([^"]+)"/g);
      assert.equal(new Set(ids).size, ids.length, `${name} has two headings of one name`);
      pages.set(pathOf(name), { html, ids });
    }
    assert.ok(pages.size > 20);
    let withAnchor = 0;
    for (const [path, { html }] of pages) {
      for (const link of found(html, /<a href="([^"]+)"/g)) {
        if (link.startsWith('https://') || link === '/docs') continue;
        const [to = '', anchor] = link.split('#');
        const target = pages.get(to === '' ? path : to);
        assert.ok(target, `${path} links to ${link}`);
        if (anchor === undefined) continue;
        assert.ok(target.ids.includes(anchor), `${path} links to ${link}`);
        withAnchor += 1;
      }
    }
    assert.ok(withAnchor > 10);
    const listed = (await readGuide()).map(({ path }) => path.replace('docs/partners/', ''));
    assert.deepEqual(listed.sort(), (await readdir(FOLDER)).sort(), 'not all are on the first page');
  });

  it('shows code as it is written, and tables as tables', async () => {
    const html = await (await fetch(`${origin}/guide/verifying-webhooks`)).text();
    assert.match(html, /=&gt; /);
    const samples = found(html, /<pre><code class="language-\w+">(.*?)<\/code>/gs);
    assert.ok(samples.length > 0);
    for (const sample of samples) assert.doesNotMatch(sample, /[<>]/);
    assert.match(await (await fetch(`${origin}/guide`)).text(), /<table>.*<a href="\/guide\/cards">/s);
  });

  it("has the reference's policy, and loads its stylesheet from this process alone", async () => {
    const policyOf = ({ headers }: Response) => headers.get('content-security-policy');
    const page = await fetch(`${origin}/guide`);
    assert.equal(policyOf(page), policyOf(await fetch(`${origin}/docs`)));
    const html = await page.text();
    assert.doesNotMatch(html, /<script|<img| style=/);
    assert.deepEqual(found(html, /<link [^>]*href="([^"]+)"/g), ['data:,', '/guide/guide.css']);
    const { status, headers } = await fetch(`${origin}/guide/guide.css`);
    assert.deepEqual([status, headers.get('content-type')?.slice(0, 8)], [200, 'text/css']);
  });

  it('answers 404 for a page that it does not have', async () => {
    for (const path of ['/guide/nothing', '/guide/README', '/guide/cards/x', '/guide/..%2f..%2fREADME'])
      assert.equal((await fetch(origin + path)).status, 404, path);
  });
});
