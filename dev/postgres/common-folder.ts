/** What user postgres can reach on every machine, whoever owns the checkout. */
export const COMMON_FOLDER = '/var/lib/virtual-card-issuing-api';
