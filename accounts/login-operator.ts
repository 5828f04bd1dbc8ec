import type { Command } from 'commander';
import { z } from 'zod';
import { read } from '../operator/flag-values.ts';
import type { Verbs } from '../operator/verbs.ts';
import {
  createOperatorLogin,
  LOGIN_NAME,
  readOperatorLogin,
  readOperatorLogins,
  revokeOperatorLogin,
} from './operator-logins.ts';

export function loginNoun(login: Command, { session, verb, examples }: Verbs): void {
  login.addHelpText('after', examples('login create anna', 'login list'));

  login
    .command('create')
    .description("create an operator's login, whose URL is shown only once; needs the owner's DATABASE_URL")
    .argument('<name>', 'of the login', read(LoginName))
    .addHelpText('after', examples('login create anna'))
    .action(
      verb(async (name: string) => {
        const owner = await session.owner();
        const url = new URL(session.config.ownerDatabaseUrl);
        url.username = name;
        url.password = await createOperatorLogin(owner, name);
        return {
          value: { ...(await readOperatorLogin(owner.orm.em.fork(), name)), database_url: url.href },
          note: 'This URL is shown only once: hand it over now, for DATABASE_URL of the command line.',
        };
      }),
    );

  login
    .command('list')
    .description('the logins of operators')
    .addHelpText('after', examples('login list'))
    .action(
      verb(async () => ({
        value: await readOperatorLogins((await session.orm()).em.fork()),
        columns: ['id', 'status', 'sessions'],
      })),
    );

  login
    .command('revoke')
    .description("refuse an operator's login for good, and end its sessions; needs the owner's DATABASE_URL")
    .argument('<name>', 'of the login', read(LoginName))
    .addHelpText('after', examples('login revoke anna'))
    .action(
      verb(async (name: string) => {
        const owner = await session.owner();
        await revokeOperatorLogin(owner, name);
        return { value: await readOperatorLogin(owner.orm.em.fork(), name) };
      }),
    );
}

const LoginName = z
  .string()
  .regex(
    LOGIN_NAME,
    'must have 1 to 63 lower-case letters, digits or _, begin with a letter, and not with pg_',
  );
