import { z } from 'zod';
import { freePort, isPortFree } from '../free-port.ts';
import { readJsonFile, writePrivateFile } from '../process/files.ts';

const Ports = z.object({
  postgres: z.number(),
  temporal: z.number(),
  temporalUi: z.number(),
  codec: z.number(),
  worker: z.number(),
  tron: z.number(),
  issuer: z.number(),
});

export type Ports = z.infer<typeof Ports>;

/** The ports that a variable can ask for. */
const VARIABLES: Partial<Record<keyof Ports, string>> = {
  postgres: 'POSTGRES_PORT',
  temporal: 'TEMPORAL_PORT',
  temporalUi: 'TEMPORAL_UI_PORT',
  worker: 'WORKER_PORT',
};

/** For each: the requested port, or else the one used last time if it is still free, or else any free one. */
export async function choosePorts(file: string, asked: Partial<Ports>): Promise<Ports> {
  const ports = readJsonFile(file, Ports.partial()) ?? {};
  for (const name of Ports.keyof().options) {
    const [wanted, before] = [asked[name], ports[name]];
    if (wanted !== undefined) await demandFree(wanted, VARIABLES[name] ?? name);
    ports[name] = wanted ?? (before !== undefined && (await isPortFree(before)) ? before : await freePort());
  }
  writePrivateFile(file, JSON.stringify(ports, null, 2));
  return Ports.parse(ports);
}

/** @throws Error if something else listens on the port that a variable names */
export async function demandFree(port: number, variable: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new Error(`port ${port} is taken: stop what listens there, or set ${variable} to another port`);
}
