/** The command line does not say enough, or contradicts itself: exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage';
}
