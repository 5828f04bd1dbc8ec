// Runs before anything an older Node could not read: the service is TypeScript, run as it is.
const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST) {
  console.error(
    `This needs Node.js ${OLDEST} or newer, and ${process.execPath} is ${process.version}. Install a newer one, or run ` +
      '"npm ci" without --omit=dev: on Linux and macOS that brings one along for npm scripts.',
  );
  process.exit(1);
}
