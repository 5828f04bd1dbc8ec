import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import type { ListReading } from '../reading.ts';
import { Button, Loading, Problem } from './parts.tsx';
import css from './table.module.css';

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers are aligned at their end. */
  isNumber?: boolean;
  /** Left out on a narrow screen. */
  isWide?: boolean;
}

export function Table<T extends { id: string }>({
  label,
  columns,
  rows,
}: {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
}) {
  const classOf = ({ isNumber, isWide }: Column<T>) =>
    [isNumber && css.end, isWide && css.wide].filter(Boolean).join(' ') || undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard.
    <section className={css.scroll} aria-label={label} tabIndex={0}>
      <table className={css.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" className={classOf(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              {columns.map((column) => (
                <td key={column.head} className={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A list that loads more by cursor. */
export function ListTable<T extends { id: string }>({
  list,
  label,
  columns,
  empty,
}: {
  list: ListReading<T>;
  label: string;
  columns: Column<T>[];
  /** What to do first, if nothing is there and nothing is filtered. */
  empty: ReactNode;
}) {
  const { rows, error, hasNextPage, isFetchingNextPage } = list;
  const isFiltered = Object.keys(useSearch({ strict: false })).length > 0;
  if (rows === undefined) return error ? <Problem error={error} /> : <Loading />;
  return (
    <>
      {error && <Problem error={error} />}
      {rows.length > 0 && <Table label={label} columns={columns} rows={rows} />}
      {rows.length === 0 && !hasNextPage && (isFiltered ? <NothingFound /> : empty)}
      {(hasNextPage || (list.data?.pages.length ?? 0) > 1) && (
        <div className={css.more}>
          {hasNextPage && (
            <Button disabled={isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {isFetchingNextPage ? 'Loading…' : 'Load more'}
            </Button>
          )}
          <span role="status">
            {hasNextPage ? '' : 'All '}
            {rows.length.toLocaleString('en-US')} shown
          </span>
        </div>
      )}
    </>
  );
}

function NothingFound() {
  const navigate = useNavigate();
  return (
    <div className={css.more}>
      <span>Nothing matches these filters.</span>
      <Button small onClick={() => void navigate({ to: '.', search: {} })}>
        Clear filters
      </Button>
    </div>
  );
}

/** A filter that stands in the address. With `options`, one of them is chosen. */
export interface Filter {
  name: string;
  label: string;
  options?: readonly string[];
  type?: 'text' | 'datetime-local' | 'month';
  /** The default. */
  otherwise?: string;
}

/** The filters of time that every list has. */
export const TIMES: Filter[] = [
  { name: 'created_gte', label: 'From', type: 'datetime-local' },
  { name: 'created_lte', label: 'Until', type: 'datetime-local' },
];

export type Filters = Record<string, string>;

/** The filters of the address, as the API takes them. */
export function useFilters(): Filters {
  return useSearch({ strict: false }) as Filters;
}

export function FilterBar({ filters }: { filters: Filter[] }) {
  const chosen = useFilters();
  const navigate = useNavigate();
  const choose = (name: string, value: string) => {
    const { [name]: _, ...rest } = chosen;
    void navigate({ to: '.', search: value === '' ? rest : { ...rest, [name]: value }, replace: true });
  };
  return (
    <search className={css.filters} aria-label="Filters">
      {filters.map(({ name, label, options, type = 'text', otherwise = '' }) => (
        // biome-ignore lint/a11y/noLabelWithoutControl: its control is one of the four below.
        <label key={name}>
          {label}
          {options ? (
            <select value={chosen[name] ?? ''} onChange={({ target }) => choose(name, target.value)}>
              <option value="">All</option>
              {options.map((option) => (
                <option key={option}>{option}</option>
              ))}
            </select>
          ) : type === 'text' ? (
            <TextFilter value={chosen[name] ?? ''} onChoose={(value) => choose(name, value)} />
          ) : type === 'month' ? (
            <input
              type={type}
              value={chosen[name] ?? otherwise}
              onChange={({ target }) => choose(name, target.value)}
            />
          ) : (
            <TimeFilter value={chosen[name] ?? ''} onChoose={(value) => choose(name, value)} />
          )}
        </label>
      ))}
    </search>
  );
}

/** Chosen when its reader is done with it, so that no request is sent for each letter. */
function TextFilter({ value, onChoose }: { value: string; onChoose: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return (
    <input
      type="search"
      value={typed}
      onChange={({ target }) => setTyped(target.value)}
      onBlur={() => typed.trim() !== value && onChoose(typed.trim())}
      onKeyDown={({ key }) => key === 'Enter' && onChoose(typed.trim())}
    />
  );
}

/** Chosen once its year is one of ours: years that are half typed come by, such as 0202 of 2026. */
function TimeFilter({ value, onChoose }: { value: string; onChoose: (value: string) => void }) {
  const [typed, setTyped] = useState(toLocal(value));
  useEffect(() => setTyped(toLocal(value)), [value]);
  return (
    <input
      type="datetime-local"
      value={typed}
      onChange={({ target }) => {
        setTyped(target.value);
        if (target.value === '') onChoose('');
        else if (target.value >= '2000') onChoose(new Date(target.value).toISOString());
      }}
    />
  );
}

/** What a field for local time shows of an ISO time. */
function toLocal(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
