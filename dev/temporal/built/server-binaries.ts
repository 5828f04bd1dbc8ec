import { join } from 'node:path';

export interface ServerBinaries {
  server: string;
  sqlTool: string;
  ui: string;
}

export function binariesIn(folder: string): ServerBinaries {
  return {
    server: join(folder, 'temporal-server'),
    sqlTool: join(folder, 'temporal-sql-tool'),
    ui: join(folder, 'temporal-ui-server'),
  };
}
