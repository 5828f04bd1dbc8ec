import { describeListPlans } from '../support/api/list-plans.ts';

describeListPlans({ rows: 200_000, partitions: 26 });
