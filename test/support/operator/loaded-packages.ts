import { registerHooks } from 'node:module';

/** Runs the given command lines (JSON), and prints the npm packages that were loaded after each (JSON). */

const packages = new Set<string>();
registerHooks({
  load(url, context, next) {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
    if (name !== undefined) packages.add(name);
    return next(url, context);
  },
});

const { readOperatorConfig } = await import('../../../platform/config/operator.ts');
const { runOperator } = await import('../../../operator/program.ts');
const loaded: string[][] = [];
for (const args of JSON.parse(process.argv[2] ?? '[]')) {
  let told = '';
  const tell = (text: string) => {
    told += text;
  };
  const code = await runOperator(args, {
    readConfig: readOperatorConfig,
    actor: 'tester',
    out: tell,
    err: tell,
  });
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${told}`);
  loaded.push([...packages]);
}
process.stdout.write(JSON.stringify(loaded));
