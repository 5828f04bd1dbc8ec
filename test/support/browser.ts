import { type Browser, chromium } from 'playwright-core';
import { findProgram } from './find-program.ts';

/** Headless Chromium, which reaches nothing but 127.0.0.1. Undefined if this machine has none, which is said. */
export async function launchBrowser(): Promise<Browser | undefined> {
  const executablePath = findProgram({
    names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    variable: 'CHROMIUM_PATH',
    debianPackage: 'chromium',
  });
  if (executablePath === undefined) return undefined;
  return chromium.launch({
    executablePath,
    // No name is resolved, so nothing can be asked elsewhere. Chromium's sandbox refuses to run as root.
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--no-sandbox'],
  });
}
