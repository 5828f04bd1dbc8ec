/** What a verb has to say. */
export interface Answer {
  /** What --json prints: a resource, or an array of them. */
  value: object;
  /** For people: the fields of a list's items that the table shows. */
  columns?: readonly string[];
  /** For people, below: what to do next, or why a list is empty. */
  note?: string;
  /** The command ends with exit code 1 all the same. */
  failed?: boolean;
}
