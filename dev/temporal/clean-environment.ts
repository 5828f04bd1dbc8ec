/**
 * This process's environment without what Temporal's own programs would read from it: what is meant for the service's
 * connection (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE …) is not meant for a server we start ourselves.
 */
export function environmentWithoutTemporal(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}
