import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './days-chart.css';
import type { OverviewDay } from '../../client/generated/types.gen.ts';
import { formatDay, formatMoney } from '../format.ts';

const HEIGHT = 200;

/** Thirty days as a line (the balance) or as bars (spent and refunded). It is loaded after the page. */
export function DaysChart({ days, what }: { days: OverviewDay[]; what: 'balance' | 'spending' }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = place;
    if (current === null) return;
    let chart: uPlot | undefined;
    const draw = () => {
      chart?.destroy();
      chart = new uPlot(options(current, what, days), data(what, days), current);
    };
    draw();
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    const resized = new ResizeObserver(() => chart?.setSize({ width: current.clientWidth, height: HEIGHT }));
    resized.observe(current);
    return () => {
      resized.disconnect();
      scheme.removeEventListener('change', draw);
      chart?.destroy();
    };
  }, [days, what]);
  return <div ref={place} aria-hidden="true" />;
}

function data(what: 'balance' | 'spending', days: OverviewDay[]): uPlot.AlignedData {
  const at = days.map((_, index) => index);
  if (what === 'balance') return [at, days.map(({ closing_balance }) => closing_balance)];
  return [at, days.map(({ spent }) => spent), days.map(({ refunded }) => -refunded)];
}

function options(place: HTMLElement, what: 'balance' | 'spending', days: OverviewDay[]): uPlot.Options {
  const style = getComputedStyle(place);
  // A canvas knows no custom properties: the browser works a colour out for an element.
  const colour = (name: string): string => {
    place.style.color = `var(${name})`;
    const found = style.color;
    place.style.color = '';
    return found;
  };
  const [accent, good, muted, line] = ['--accent', '--good', '--muted', '--line'].map(colour) as [
    string,
    string,
    string,
    string,
  ];
  const font = `12px ${style.fontFamily}`;
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], radius: 0.15 });
  // Without a pointer on the chart, the legend shows the last day.
  const last = days.length - 1;
  const day = (_: uPlot, index: number | null) => formatDay(days[index ?? last]?.date ?? '1970-01-01');
  const money =
    (of: (day: OverviewDay) => number) => (_: uPlot, __: number, ___: number, index: number | null) =>
      formatMoney(of(days[index ?? last] as OverviewDay));
  const axis = { stroke: muted, font, ticks: { show: false } };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    padding: [12, 8, 0, 0],
    legend: { live: true },
    cursor: { y: false, drag: { setScale: false } },
    scales: {
      x: { time: false, range: (_, min, max) => [min - 0.5, max + 0.5] },
      y: { range: (_, min, max) => around(min, max) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 30,
        values: (_, ticks) => ticks.map((at) => (days[at] ? formatDay(days[at].date) : '')),
      },
      {
        ...axis,
        size: 84,
        grid: { stroke: line, width: 1 },
        values: (_, ticks) => ticks.map((cents) => formatMoney(Math.round(cents)).replace(/\.00$/, '')),
      },
    ],
    series: [
      { label: 'Day', value: day },
      ...(what === 'balance'
        ? [
            {
              label: 'Balance',
              stroke: accent,
              width: 2,
              fill: translucent(accent),
              points: { show: false },
              value: money((day) => day.closing_balance),
            },
          ]
        : [
            {
              label: 'Spent',
              stroke: accent,
              fill: accent,
              ...(bars && { paths: bars }),
              points: { show: false },
              value: money((day) => day.spent),
            },
            {
              label: 'Refunded',
              stroke: good,
              fill: good,
              ...(bars && { paths: bars }),
              points: { show: false },
              value: money((day) => day.refunded),
            },
          ]),
    ],
  };
}

/** From zero, or from below it, with some air above; a dollar if all is zero. */
const around = (min: number, max: number): [number, number] => {
  const low = Math.min(0, min);
  const high = Math.max(0, max);
  return low === high ? [0, 100] : [low * 1.1, high * 1.1];
};

const translucent = (colour: string): string => colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');
