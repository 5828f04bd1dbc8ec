import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const OTHERS = ['node_modules', '.data', '.git'];
const PAGES = filesOf('**/*.md');
const SOURCES = filesOf('**/*.{ts,sql,mjs,sh,yaml,yml}').concat('Dockerfile', '.squawk.toml');

/** A page, alone or with a heading: docs/CONTRIBUTING.md#tests, or docs/CONTRIBUTING.md ("Tests"), or with a comma. */
const REFERENCE =
  /(?<path>(?:[\w.-]+\/)*[\w-]+\.md)(?!\.?\w)(?:#(?<anchor>[\w-]+)|(?:,| \() ?"(?<heading>[^"]+)")?/g;

const LINK = /\]\((?<file>[^)#:\s]*)(?:#(?<anchor>[^)]+))?\)/g;

function filesOf(pattern: string): string[] {
  return globSync(pattern, { cwd: ROOT, exclude: (path) => OTHERS.includes(basename(path)) }).sort();
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** A file's text in which a comment's line follows on the one before, since a reference may be split between two. */
function unfolded(text: string): string {
  return text.replaceAll(/\n\s*(?:\*|\/\/|#|--) +/g, ' ');
}

/** The page at a path from the top, or the only page of docs/ with this name. */
function pageOf(path: string): string | null {
  const fromTop = path.replace(/^(?:\.\.?\/)+/, '');
  if (PAGES.includes(fromTop)) return fromTop;
  const [page, ...others] = PAGES.filter((page) => page.startsWith('docs/') && basename(page) === path);
  return page === undefined || others.length > 0 ? null : page;
}

function headingsOf(page: string): string[] {
  const text = read(page).replaceAll(/^```.*?^```/gms, '');
  return [...text.matchAll(/^#+ +(.*)$/gm)].map(([, heading = '']) => heading.replaceAll('`', ''));
}

/** What GitHub links to. */
function anchorOf(heading: string): string {
  const kept = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, '');
  return kept.replaceAll(' ', '-');
}

function hasAnchor(page: string, anchor: string): boolean {
  return headingsOf(page).some((heading) => anchorOf(heading) === anchor);
}

function problemOf(reference: Record<string, string | undefined>): string | null {
  const { path = '', anchor, heading } = reference;
  const page = pageOf(path);
  if (page === null) return `no page, or more than one, is ${path}`;
  if (anchor !== undefined && !hasAnchor(page, anchor)) return `${page} has no heading #${anchor}`;
  if (heading !== undefined && !headingsOf(page).includes(heading)) return `${page} has no "${heading}"`;
  return null;
}

function linkProblem(from: string, link: Record<string, string | undefined>): string | null {
  const { file = '', anchor } = link;
  const path = file === '' ? from : join(dirname(from), file);
  if (!existsSync(join(ROOT, path))) return `there is no ${path}`;
  if (anchor !== undefined && path.endsWith('.md') && !hasAnchor(path, anchor))
    return `${path} has no heading #${anchor}`;
  return null;
}

function problemsIn(files: string[], problemsOf: (file: string) => (string | null)[]): string[] {
  return files.flatMap((file) =>
    problemsOf(file)
      .filter((problem) => problem !== null)
      .map((problem) => `${file}: ${problem}`),
  );
}

describe('references to documents', () => {
  it('lead to a page and a heading of this repository, in comments and messages', () => {
    const broken = problemsIn(SOURCES, (file) =>
      [...unfolded(read(file)).matchAll(REFERENCE)].map(({ groups = {} }) => problemOf(groups)),
    );
    assert.deepEqual(broken, []);
  });

  it('lead to a file and a heading of this repository, in links between pages', () => {
    const broken = problemsIn(PAGES, (page) =>
      [...read(page).matchAll(LINK)].map(({ groups = {} }) => linkProblem(page, groups)),
    );
    assert.deepEqual(broken, []);
  });

  it('name modules that exist, in the description of the architecture and of decisions', () => {
    const modules = SOURCES.map((file) => basename(file));
    const pages = PAGES.filter(
      (page) => page === 'docs/ARCHITECTURE.md' || page.startsWith('docs/decisions/'),
    );
    const broken = problemsIn(pages, (page) =>
      [...read(page).matchAll(/[\w.-]+\.ts\b/g)].map(([module]) =>
        modules.includes(module) ? null : `there is no ${module}`,
      ),
    );
    assert.deepEqual(broken, []);
  });
});
