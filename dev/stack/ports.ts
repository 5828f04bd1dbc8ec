import { z } from 'zod';
import { freePort, isPortFree } from '../free-port.ts';
import { readJsonFile, writePrivateFile } from '../process/files.ts';

const Ports = z.object({
  postgres: z.number(),
  temporal: z.number(),
  temporalUi: z.number(),
  /** The codec endpoint's port. */
  codec: z.number(),
  /** The worker's operations port. */
  worker: z.number(),
  /** The fake TRON node's port, if there is one. */
  tron: z.number().optional(),
  /** The fake issuer's port, if there is one. */
  issuer: z.number().optional(),
});

export type Ports = z.infer<typeof Ports>;

type AskedPorts = Record<keyof typeof VARIABLES, number | undefined> & {
  withTron?: boolean;
  withIssuer?: boolean;
};

const VARIABLES = {
  postgres: 'POSTGRES_PORT',
  temporal: 'TEMPORAL_PORT',
  temporalUi: 'TEMPORAL_UI_PORT',
  worker: 'WORKER_PORT',
} as const;

/** For each: the requested port, or else the one used last time if it is still free, or else any free one. */
export async function choosePorts(file: string, asked: AskedPorts): Promise<Ports> {
  const last = readJsonFile(file, Ports.partial());
  const again = async (name: keyof Ports): Promise<number> => {
    const before = last?.[name];
    return before !== undefined && (await isPortFree(before)) ? before : freePort();
  };
  const choose = async (name: keyof typeof VARIABLES): Promise<number> => {
    const wanted = asked[name];
    if (wanted === undefined) return again(name);
    await demandFree(wanted, VARIABLES[name]);
    return wanted;
  };
  const ports: Ports = {
    postgres: await choose('postgres'),
    temporal: await choose('temporal'),
    temporalUi: await choose('temporalUi'),
    codec: await again('codec'),
    worker: await choose('worker'),
  };
  if (asked.withTron) ports.tron = await again('tron');
  if (asked.withIssuer) ports.issuer = await again('issuer');
  writePrivateFile(file, JSON.stringify(ports, null, 2));
  return ports;
}

/** @throws Error if something else listens on the port that a variable names */
export async function demandFree(port: number, variable: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new Error(`port ${port} is taken: stop what listens there, or set ${variable} to another port`);
}
