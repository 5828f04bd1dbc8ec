import type { Child } from '../process/start-child.ts';
import { connectWhenServing } from './connect-when-serving.ts';
import { registerNamespace, setRetention } from './register-namespace.ts';
import { STOP_STEPS } from './stop-steps.ts';

/** Returns once the server that a process becomes has the namespace; stops the process if it can't be given it. */
export async function connectAndRegister(address: string, namespace: string, server: Child): Promise<void> {
  try {
    const connection = await connectWhenServing(address, server);
    try {
      await registerNamespace(connection, namespace);
      await setRetention(connection, namespace);
    } finally {
      await connection.close();
    }
  } catch (error) {
    await server.stop(STOP_STEPS);
    throw error;
  }
}
