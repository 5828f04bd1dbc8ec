import { readPartnerNames } from '../accounts/reads.ts';
import { readAttention } from '../exports/attention.ts';
import { type Noun, verb } from './verbs.ts';

export const attentionNoun: Noun = {
  list: verb({
    about: 'everything that needs an operator, oldest first, with the command that resolves it',
    examples: [''],
    async run(_, { session }) {
      const orm = await session.orm();
      const items = await readAttention(orm, session.config, session.countWorkers);
      const partnerIds = items.flatMap(({ partner_id }) => partner_id ?? []);
      const names = await readPartnerNames(orm, partnerIds);
      return {
        value: items.map(({ kind, id, since, mode, partner_id, ...rest }) => {
          const partner_name = partner_id === null ? null : (names.get(partner_id) ?? null);
          return { kind, id, since, mode, partner_id, partner_name, ...rest };
        }),
        columns: ['since', 'kind', 'mode', 'id', 'partner_name', 'reason'],
        // Too long for a column.
        below: ['at_issuer', 'command', 'or_command'],
        note: items.length === 0 ? 'Nothing needs attention.' : undefined,
      };
    },
  }),
};
