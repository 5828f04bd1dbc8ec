import { Command } from 'commander';
import { describeFailure } from '../process/describe-failure.ts';
import { dataFolder } from '../stack/data-folder.ts';
import { readStackFile } from '../stack/stack-file.ts';
import { PAY_PATH, PayAnswer } from './local-tron.ts';

/** `npm run tron -- pay <address> <usdt>`: pays on the fake TRON node of `npm start -- --with-tron`. */
const program = new Command('npm run tron --');
program
  .command('pay')
  .description('pays USDT on the fake TRON node of `npm start -- --with-tron`')
  .argument('<address>', "the deposit instruction's `address`")
  .argument('<usdt>', 'the amount: a decimal with at most 6 places, for instance 25.00')
  .action(pay);

try {
  await program.parseAsync();
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}

async function pay(to: string, amountUsdt: string): Promise<void> {
  const { path, stack } = dataFolder();
  const url = readStackFile(stack)?.tronUrl;
  if (url === undefined)
    throw new Error(`no stack with a TRON node was started on ${path}: run \`npm start -- --with-tron\``);
  const answer = PayAnswer.safeParse(await ask(url, { to, amountUsdt }, path));
  if (!answer.success)
    throw new Error(`what answers at ${url} is not the TRON node of ${path}: start the stack again`);
  if ('Error' in answer.data) throw new Error(answer.data.Error);
  const { txId, block, solidBlock } = answer.data;
  console.log(
    `paid ${amountUsdt} USDT to ${to}\ntransaction ${txId}\nblock ${block}, solid with block ${solidBlock}`,
  );
}

/** @returns the answer's JSON, or its text if it is not JSON */
async function ask(url: string, request: { to: string; amountUsdt: string }, path: string): Promise<unknown> {
  let text: string;
  try {
    const response = await fetch(url + PAY_PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(10_000),
    });
    text = await response.text();
  } catch (error) {
    throw new Error(
      `the TRON node at ${url} does not answer: make sure that \`npm start -- --with-tron\` runs on ${path}`,
      { cause: error },
    );
  }
  return text.startsWith('{') ? JSON.parse(text) : text;
}
