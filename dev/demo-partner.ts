import type { Config } from '../config.ts';

/** The partner a newcomer tries things out with. */
export interface DemoPartner {
  partnerId: string;
  testKey: string;
  liveKey: string;
}

export async function setUpDemo(_options: {
  config: Config;
  file: string;
}): Promise<{ partner: DemoPartner; isNew: boolean }> {
  return { partner: { partnerId: 'prt_x', testKey: 'sk_test_x', liveKey: 'sk_live_x' }, isNew: true };
}
