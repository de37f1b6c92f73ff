// node:perf_hooks.

const marks = new Map();
const timeOrigin = Date.now() - host.now();

const performance = {
  timeOrigin,
  now: () => host.now(),
  mark: (name) => {
    marks.set(name, host.now());
    return { name, entryType: "mark", startTime: marks.get(name), duration: 0 };
  },
  measure: (name, start, end) => {
    const from = marks.get(start) ?? 0;
    const to = marks.get(end) ?? host.now();
    return { name, entryType: "measure", startTime: from, duration: to - from };
  },
  clearMarks: () => marks.clear(),
  clearMeasures: () => {},
  getEntries: () => [],
  getEntriesByName: () => [],
  getEntriesByType: () => [],
  eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
  timerify: (fn) => fn,
  toJSON: () => ({ timeOrigin }),
};

class PerformanceObserver {
  observe() {}
  disconnect() {}
}

const histogram = () => ({ enable: () => true, disable: () => true, min: 0, max: 0, mean: 0, percentile: () => 0, reset: () => {} });

module.exports = { performance, PerformanceObserver, monitorEventLoopDelay: histogram, createHistogram: histogram, constants: {} };
