import { describeListPlans } from '../support/api/list-plans.ts';

describeListPlans({ rows: 20_000, partitions: 6 });
