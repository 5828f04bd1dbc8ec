import { loadModule, parseSync } from 'libpg-query';
import type { BuiltStatement } from '../../platform/db/sql.ts';
import { asOwner } from './postgres.ts';

// Finds out which rows of tenants' tables a statement can reach. It reads the statement with PostgreSQL's own grammar, not
// with a pattern, and then follows equalities: from the account and mode that the statement is given, through conditions,
// joins, CTEs and composite foreign keys, to each table in it. What it does not understand binds nothing, so it errs towards
// refusing a statement. It can't see into functions: what those read is theirs to check.

/** What the guard knows of a migrated database. Tables have their schema's name, except in `public`. */
export interface Schema {
  columns: ReadonlyMap<string, ReadonlySet<string>>;
  /** By table and column, as `topup.card_id`: the unique column whose row has the same account and mode, `card.id`. */
  ids: ReadonlyMap<string, string>;
}

export async function readSchema(databaseUrl: string): Promise<Schema> {
  const columns = await asOwner<{ name: string; columns: string[] }>(databaseUrl, COLUMNS);
  const ids = await asOwner<{ column: string; of: string }>(databaseUrl, IDS);
  return {
    columns: new Map(columns.map((table) => [table.name, new Set(table.columns)])),
    ids: new Map(ids.map(({ column, of }) => [column, of])),
  };
}

const NAME = `CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname`;
const COLUMNS = `
  SELECT ${NAME} AS name, array_agg(a.attname::text) AS columns
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
    AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  GROUP BY 1`;
const IDS = `
  SELECT ${NAME} || '.' || a.attname AS "column", ${NAME} || '.' || a.attname AS of
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
  WHERE i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL AND NOT c.relispartition
  UNION ALL
  SELECT child.name || '.' || child.id, parent.name || '.' || parent.id
  FROM pg_constraint f
    CROSS JOIN LATERAL (SELECT f.conrelid, ${NAME} AS name, max(a.attname) FILTER (WHERE a.attname NOT IN
        ('partner_id', 'mode')) AS id, count(*) FILTER (WHERE a.attname IN ('partner_id', 'mode')) AS tenant
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (f.conkey) WHERE c.oid = f.conrelid GROUP BY 2) child
    CROSS JOIN LATERAL (SELECT ${NAME} AS name, max(a.attname) FILTER (WHERE a.attname NOT IN ('partner_id', 'mode')) AS id
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (f.confkey) WHERE c.oid = f.confrelid GROUP BY 1) parent
  WHERE f.contype = 'f' AND cardinality(f.conkey) = 3 AND child.tenant = 2 AND f.conparentid = 0`;

/** A table is a tenant's if its rows have an account and a mode. */
export const isOfTenants = (schema: Schema, table: string): boolean =>
  ['partner_id', 'mode'].every((column) => schema.columns.get(table)?.has(column));

/** The tenants' tables of which a statement can reach rows of other accounts or the other mode. */
export async function unboundTables(schema: Schema, statement: BuiltStatement): Promise<string[]> {
  await loadModule();
  const reading = new Reading(schema, statement.names);
  for (const { stmt } of parseSync(statement.text).stmts ?? [])
    reading.statement(stmt as Tree, null, NO_CTES);
  return reading.unbound();
}

// biome-ignore lint/suspicious/noExplicitAny: the parser's nodes are objects with one key, their type.
type Tree = Record<string, any>;

/** A column of a table, CTE or sub-select at one place of the statement, or a value. */
type Column = string;

/** Something with columns in a FROM. */
interface Source {
  columns: readonly { name: string; column: Column }[];
}

/** Where names are looked up: the sources of a SELECT, UPDATE or DELETE, and those around it. */
interface Level {
  sources: Map<string, Source>;
  /** The names of its own sources' places. Conditions bind only these. */
  places: Set<string>;
  outer: Level | null;
}

type Ctes = ReadonlyMap<string, Source>;
const NO_CTES: Ctes = new Map();
const NOTHING: Source = { columns: [] };

class Reading {
  readonly #schema: Schema;
  readonly #names: BuiltStatement['names'];
  /** What each column is known to equal: the values `$partnerId` and `$mode`, `constant`, the id of a bound row. */
  readonly #facts = new Map<Column, Set<string>>();
  /** The first column has what the second is known to equal. */
  readonly #edges: [Column, Column][] = [];
  /** A column of a UNION or VALUES is what it is in all of its parts. */
  readonly #unions: { column: Column; parts: Column[] }[] = [];
  /** Each place at which a tenant's table is read or written. */
  readonly #places: { table: string; place: string }[] = [];
  #count = 0;

  constructor(schema: Schema, names: BuiltStatement['names']) {
    this.#schema = schema;
    this.#names = names;
  }

  unbound(): string[] {
    for (let known = -1; known !== this.#known(); ) {
      known = this.#known();
      for (const [column, from] of this.#edges) this.#learn(column, this.#of(from));
      for (const { column, parts } of this.#unions) {
        const [first = [], ...others] = parts.map((part) => this.#of(part));
        this.#learn(
          column,
          [...first].filter((fact) => others.every((facts) => [...facts].includes(fact))),
        );
      }
      for (const place of this.#places) this.#bindIds(place);
    }
    const unbound = this.#places.filter(({ place }) => !this.#isBound(place));
    return [...new Set(unbound.map(({ table }) => table))].sort();
  }

  #known(): number {
    return [...this.#facts.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #of(column: Column): Iterable<string> {
    if (column.startsWith('$') || column === 'constant') return [column];
    return this.#facts.get(column) ?? [];
  }

  #learn(column: Column, facts: Iterable<string>): void {
    const known = this.#facts.get(column) ?? new Set();
    for (const fact of facts) known.add(fact);
    this.#facts.set(column, known);
  }

  #isBound(place: string): boolean {
    const mode = [...this.#of(`${place}.mode`)];
    return (
      [...this.#of(`${place}.partner_id`)].includes('$partnerId') &&
      (mode.includes('$mode') || mode.includes('constant'))
    );
  }

  /** The ids in a bound row are of its account and mode, and so is a row that has such an id. */
  #bindIds({ table, place }: { table: string; place: string }): void {
    for (const name of this.#schema.columns.get(table) ?? []) {
      const id = this.#schema.ids.get(`${table}.${name}`);
      if (id === undefined) continue;
      const column = `${place}.${name}`;
      if (this.#isBound(place)) this.#learn(column, [id]);
      else if ([...this.#of(column)].includes(id)) {
        this.#learn(`${place}.partner_id`, ['$partnerId']);
        this.#learn(`${place}.mode`, ['$mode']);
      }
    }
  }

  /** @returns its columns: of a SELECT, or of a RETURNING */
  statement(statement: Tree, outer: Level | null, ctes: Ctes): Source {
    const [type, tree] = Object.entries<Tree>(statement)[0] ?? ['', {}];
    const known = this.#ctes(tree.withClause, outer, ctes);
    if (type === 'SelectStmt') return this.#select(tree, outer, known);
    if (type === 'InsertStmt') return this.#insert(tree, outer, known);
    if (type !== 'UpdateStmt' && type !== 'DeleteStmt')
      throw new Error(`the tenant guard can't read a ${type}`);
    const level: Level = { sources: new Map(), places: new Set(), outer };
    this.#from({ RangeVar: tree.relation }, level, NO_CTES);
    for (const item of tree.fromClause ?? tree.usingClause ?? []) this.#from(item, level, known);
    this.#conditions(tree.whereClause, level, level.places, known);
    this.#nested([tree.targetList, tree.whereClause], level, known);
    return this.#targets(tree.returningClause?.exprs ?? [], level, known);
  }

  #ctes(clause: Tree | undefined, outer: Level | null, ctes: Ctes): Ctes {
    const known = new Map(ctes);
    for (const { CommonTableExpr: cte } of clause?.ctes ?? []) {
      const names = (cte.aliascolnames ?? []).map((name: Tree) => name.String.sval);
      const select = cte.ctequery.SelectStmt;
      if (clause?.recursive && select?.op === 'SETOP_UNION') {
        known.set(cte.ctename, renamed(this.statement({ SelectStmt: select.larg }, outer, known), names));
      }
      known.set(cte.ctename, renamed(this.statement(cte.ctequery, outer, known), names));
    }
    return known;
  }

  #select(tree: Tree, outer: Level | null, ctes: Ctes): Source {
    if (tree.op !== undefined && tree.op !== 'SETOP_NONE') {
      const parts = [tree.larg, tree.rarg].map((part) => this.statement({ SelectStmt: part }, outer, ctes));
      return this.#union(parts);
    }
    const level: Level = { sources: new Map(), places: new Set(), outer };
    for (const item of tree.fromClause ?? []) this.#from(item, level, ctes);
    this.#conditions(tree.whereClause, level, level.places, ctes);
    const { targetList, whereClause, havingClause, sortClause, limitCount, limitOffset, groupClause } = tree;
    this.#nested([whereClause, havingClause, sortClause, limitCount, limitOffset, groupClause], level, ctes);
    if (tree.valuesLists !== undefined) {
      this.#nested(tree.valuesLists, level, ctes);
      return this.#union(
        tree.valuesLists.map(({ List: row }: Tree) => ({
          columns: row.items.map((value: Tree, index: number) => ({
            name: `column${index + 1}`,
            column: this.#column(value, level, ctes) ?? this.#fresh(),
          })),
        })),
      );
    }
    this.#nested(targetList, level, ctes);
    return this.#targets(targetList ?? [], level, ctes);
  }

  #union(parts: readonly Source[]): Source {
    const [first = NOTHING] = parts;
    const columns = first.columns.map(({ name }, index) => {
      const column = this.#fresh();
      this.#unions.push({
        column,
        parts: parts.map(({ columns }) => columns[index]?.column ?? this.#fresh()),
      });
      return { name, column };
    });
    return { columns };
  }

  #insert(tree: Tree, outer: Level | null, ctes: Ctes): Source {
    const rows = tree.selectStmt === undefined ? NOTHING : this.statement(tree.selectStmt, outer, ctes);
    const level: Level = { sources: new Map(), places: new Set(), outer };
    const { columns } = this.#from({ RangeVar: tree.relation }, level, NO_CTES);
    for (const [index, { ResTarget: target }] of (tree.cols ?? []).entries()) {
      const to = columns.find(({ name }) => name === target.name);
      const from = rows.columns[index];
      if (to !== undefined && from !== undefined) this.#edges.push([to.column, from.column]);
    }
    const { onConflictClause: conflict } = tree;
    this.#nested([conflict?.targetList, conflict?.whereClause], level, ctes);
    const key = (conflict?.infer?.indexElems ?? []).map(({ IndexElem: { name } }: Tree) => name);
    if (conflict?.action === 'ONCONFLICT_UPDATE' && !(key.includes('partner_id') && key.includes('mode'))) {
      // The row that is there already can be anybody's, unless the condition says whose.
      const found: Level = { sources: new Map(), places: new Set(), outer: null };
      this.#from({ RangeVar: tree.relation }, found, NO_CTES);
      this.#conditions(conflict.whereClause, found, found.places, ctes);
    }
    return this.#targets(tree.returningClause?.exprs ?? [], level, ctes);
  }

  #from(item: Tree, level: Level, ctes: Ctes): Source & { places: string[] } {
    const [type, tree] = Object.entries<Tree>(item)[0] ?? ['', {}];
    if (type === 'JoinExpr') return this.#join(tree, level, ctes);
    const alias: string | undefined = tree.alias?.aliasname;
    const names = (tree.alias?.colnames ?? []).map((name: Tree) => name.String.sval);
    const place = `${++this.#count}`;
    level.places.add(place);
    let source: Source = NOTHING;
    if (type === 'RangeSubselect') source = this.statement(tree.subquery, level, ctes);
    if (type === 'RangeFunction') this.#nested(tree.functions, level, ctes);
    const cte = type === 'RangeVar' && tree.schemaname === undefined ? ctes.get(tree.relname) : undefined;
    if (cte !== undefined) source = cte;
    else if (type === 'RangeVar') {
      const schema =
        tree.schemaname === undefined || tree.schemaname === 'public' ? '' : `${tree.schemaname}.`;
      const table = `${schema}${tree.relname}`;
      const columns = [...(this.#schema.columns.get(table) ?? [])];
      source = { columns: columns.map((name) => ({ name, column: `${place}.${name}` })) };
      if (isOfTenants(this.#schema, table)) this.#places.push({ table, place });
    }
    // Each place has columns of its own, because its conditions are not those of other places.
    const columns = renamed(source, names).columns.map(({ name, column: from }) => {
      const column = `${place}.${name}`;
      if (column !== from) this.#edges.push([column, from]);
      return { name, column };
    });
    level.sources.set(alias ?? tree.relname ?? place, { columns });
    return { columns, places: [place] };
  }

  #join(tree: Tree, level: Level, ctes: Ctes): Source & { places: string[] } {
    const left = this.#from(tree.larg, level, ctes);
    const right = this.#from(tree.rarg, level, ctes);
    const both = {
      columns: [...left.columns, ...right.columns],
      places: [...left.places, ...right.places],
    };
    // An outer join keeps rows of the other side that its condition is not true for.
    const bound = { JOIN_INNER: both.places, JOIN_LEFT: right.places, JOIN_RIGHT: left.places };
    const places = new Set(bound[tree.jointype as keyof typeof bound] ?? []);
    this.#conditions(tree.quals, level, places, ctes);
    this.#nested(tree.quals, level, ctes);
    for (const { String: using } of tree.usingClause ?? []) {
      const [a, b] = [left, right].map(
        ({ columns }) => columns.find(({ name }) => name === using.sval)?.column,
      );
      this.#equal(a, b, places);
    }
    return both;
  }

  /** Reads the conditions that are all true of a row. `places` are those that they bind. */
  #conditions(tree: Tree | undefined, level: Level, places: ReadonlySet<string>, ctes: Ctes): void {
    const ranges: {
      operator: string;
      left: string;
      columns: (Column | null)[];
      limits: (Column | null)[];
    }[] = [];
    for (const condition of conjuncts(tree)) {
      const { A_Expr: comparison, SubLink: link } = condition;
      if (link?.subLinkType === 'ANY_SUBLINK' && link.operName === undefined) {
        const { columns } = this.statement(link.subselect, level, ctes);
        for (const [index, part] of partsOf(link.testexpr).entries()) {
          const column = this.#column(part, level, ctes);
          this.#equal(column, columns[index]?.column, places);
        }
      }
      // One account in both modes, as an operator gives them.
      const [any] = comparison?.kind === 'AEXPR_OP_ANY' ? partsOf(comparison.rexpr) : [];
      if (any !== undefined && this.#column(any, level, ctes) === '$modes') {
        this.#equal(this.#column(comparison.lexpr, level, ctes), '$mode', places);
      }
      if (comparison?.kind !== 'AEXPR_OP') continue;
      const operator = comparison.name.at(-1).String.sval;
      const [columns, limits] = [comparison.lexpr ?? {}, comparison.rexpr].map((side) =>
        partsOf(side).map((part) => this.#column(part, level, ctes)),
      ) as [(Column | null)[], (Column | null)[]];
      if (operator === '=' && columns.length === limits.length) {
        for (const [index, column] of columns.entries()) this.#equal(column, limits[index], places);
      } else if (columns.length > 1) ranges.push({ operator, left: String(columns), columns, limits });
    }
    // A range of keys: what both ends begin with is what all keys in it begin with.
    for (const from of ranges.filter(({ operator }) => operator.startsWith('>'))) {
      const to = ranges.find(({ operator, left }) => operator.startsWith('<') && left === from.left);
      for (const [index, column] of from.columns.entries()) {
        if (to === undefined || from.limits[index] === null || from.limits[index] !== to.limits[index]) break;
        this.#equal(column, from.limits[index], places);
      }
    }
  }

  #equal(a: Column | null | undefined, b: Column | null | undefined, places: ReadonlySet<string>): void {
    if (typeof a !== 'string' || typeof b !== 'string') return;
    const isOf = (column: Column) => places.has(column.split('.', 1)[0] ?? '');
    if (isOf(a)) this.#edges.push([a, b]);
    if (isOf(b)) this.#edges.push([b, a]);
  }

  /** The column or value that an expression is; null if it is anything else. */
  #column(tree: Tree, level: Level, ctes: Ctes): Column | null {
    const { ColumnRef, ParamRef, TypeCast, A_Const, SubLink } = tree;
    if (TypeCast !== undefined) return this.#column(TypeCast.arg, level, ctes);
    if (A_Const !== undefined) return 'constant';
    if (ParamRef !== undefined) {
      const name = this.#names[ParamRef.number - 1];
      // A row that is inserted names its columns as they are.
      if (name === 'partner_id') return '$partnerId';
      return name === undefined ? 'constant' : `$${name}`;
    }
    if (SubLink?.subLinkType === 'EXPR_SUBLINK') {
      const { targetList = [], fromClause, whereClause } = SubLink.subselect.SelectStmt ?? {};
      const isValue = fromClause === undefined && whereClause === undefined && targetList.length === 1;
      if (isValue) return this.#column(targetList[0].ResTarget.val, level, ctes);
      return this.statement(SubLink.subselect, level, ctes).columns[0]?.column ?? null;
    }
    if (ColumnRef === undefined) return null;
    const names: string[] = ColumnRef.fields.map((field: Tree) => field.String?.sval ?? '*');
    return lookUp(names, level);
  }

  #targets(list: readonly Tree[], level: Level, ctes: Ctes): Source {
    const columns = list.flatMap(({ ResTarget: { name, val } }) => {
      const fields: Tree[] = val.ColumnRef?.fields ?? [];
      if (fields.at(-1)?.A_Star !== undefined) {
        const [alias] = fields;
        const starred =
          fields.length === 1 ? [...level.sources.values()] : [level.sources.get(alias?.String.sval)];
        return starred.flatMap((source) => source?.columns ?? []);
      }
      const column = this.#column(val, level, ctes) ?? this.#fresh();
      return [{ name: name ?? fields.at(-1)?.String?.sval ?? '', column }];
    });
    return { columns };
  }

  #nested(tree: unknown, level: Level, ctes: Ctes): void {
    if (typeof tree !== 'object' || tree === null) return;
    if (Array.isArray(tree)) {
      for (const part of tree) this.#nested(part, level, ctes);
      return;
    }
    for (const [type, part] of Object.entries<Tree>(tree as Tree)) {
      if (type === 'SubLink') {
        this.statement(part.subselect, level, ctes);
        this.#nested(part.testexpr, level, ctes);
      } else this.#nested(part, level, ctes);
    }
  }

  #fresh(): Column {
    return `${++this.#count}.`;
  }
}

const conjuncts = (tree: Tree | undefined): Tree[] => {
  if (tree === undefined) return [];
  return tree.BoolExpr?.boolop === 'AND_EXPR' ? tree.BoolExpr.args.flatMap(conjuncts) : [tree];
};

const partsOf = (tree: Tree): Tree[] => tree.RowExpr?.args ?? [tree];

const renamed = ({ columns }: Source, names: readonly string[]): Source => ({
  columns: columns.map(({ name, column }, index) => ({ name: names[index] ?? name, column })),
});

function lookUp(names: readonly string[], level: Level): Column | null {
  const name = names.at(-1);
  for (let at: Level | null = level; at !== null; at = at.outer) {
    const sources =
      names.length === 1 ? [...at.sources.values()] : [at.sources.get(names.at(-2) ?? '') ?? NOTHING];
    const found = sources.flatMap(({ columns }) => columns.filter((column) => column.name === name));
    if (found.length > 0) return found[0]?.column ?? null;
  }
  return null;
}
