/** What any program may need to know of this machine: where things are, its language, how the network is reached. */
const ORDINARY =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TMP|TEMP|XDG_\w+|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|(HTTPS?|ALL|NO)_PROXY|\w*SSL_CERT_(FILE|DIR)|NODE_\w+|GRPC_\w+|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|USERPROFILE|(LOCAL)?APPDATA)$/i;

/**
 * The environment of a program that the local stack starts. Whatever else is in ours is none of its business: other
 * programs' credentials, above all.
 * @param own names of variables that are meant for it, beside the ordinary ones; an empty value counts as unset
 */
export function childEnvironment(own: (name: string) => boolean = () => false): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name, value]) => value !== '' && (ORDINARY.test(name) || own(name)),
  );
  return Object.fromEntries(kept);
}

/** Its proxies and caches, its C compiler, and how it gets at modules. */
export const isForGo = (name: string): boolean => /^(GO\w+|CGO_\w+|CC|CXX|GIT_\w+)$/.test(name);
