"use strict";
/* Histograms, and thresholds that are moved by mouse, finger or keys. Every bin is as wide as the others: bins that grow
   make a logarithmic axis without being told. */
(() => {
  const { el } = page;
  const charts = new Set();

  /** Return a colour of our styles as it is now, in light or dark: canvases know no variables. */
  function colour(name) {
    const probe = el("span", { hidden: true });
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          seen.unobserve(entry.target);
          entry.target.draw();
        }
    },
    { rootMargin: "300px" },
  );

  /** Where values stand among bins, and what stands at a place; edges without a number are open. */
  page.bins = (edges) => {
    const last = edges.length - 1,
      whole = edges.every((edge) => edge === null || Number.isInteger(edge)) && last > 0 && edges[last] - edges[0] > 4;
    const limit = (value) => Math.max(edges[0], Math.min(edges[last], value));
    function place(value) {
      const kept = limit(value);
      let low = 0,
        high = last;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (edges[middle] <= kept) low = middle;
        else high = middle;
      }
      return low + (kept - edges[low]) / (edges[high] - edges[low]);
    }
    function value(at) {
      const low = Math.max(0, Math.min(last - 1, Math.floor(at))),
        width = edges[low + 1] - edges[low];
      const exact = edges[low] + (at - low) * width;
      if (whole) return limit(Math.round(exact));
      const digits = Math.max(0, Math.min(12, Math.ceil(-Math.log10(width / 50))));
      return limit(Number(exact.toFixed(digits)));
    }
    function step(from, way, size) {
      let at = place(from),
        to = from;
      while (to === from && at > -1 && at < last + 1) {
        at += way * size;
        to = value(at);
      }
      return limit(to);
    }
    /**
     * Return how many of these counts are below a value, or not above it.
     *
     * on: how many of each bin are its lower edge itself; the others of a bin are taken to be spread evenly.
     */
    function below(counts, limit, on = [], orEqual = false) {
      if (limit < edges[0]) return 0;
      const at = place(limit),
        bin = Math.floor(at);
      let sum = 0;
      for (let each = 0; each < bin && each < counts.length; each += 1) sum += counts[each];
      if (bin >= counts.length) return sum;
      const here = on[bin] || 0;
      return sum + (limit > edges[bin] || orEqual ? here : 0) + (counts[bin] - here) * (at - bin);
    }
    function quantile(counts, share, on = []) {
      const wanted = share * counts.reduce((sum, each) => sum + each, 0);
      let sum = 0;
      for (let bin = 0; bin < counts.length; bin += 1) {
        const here = on[bin] || 0;
        if (here > 0 && sum + here >= wanted) return edges[bin];
        if (counts[bin] > 0 && sum + counts[bin] >= wanted)
          return value(bin + (wanted - sum - here) / (counts[bin] - here));
        sum += counts[bin];
      }
      return edges[last];
    }
    return { place, value, step, below, quantile, count: last, low: edges[0], high: edges[last] };
  };

  /**
   * Return a figure with a histogram.
   *
   * label: what is counted. edges: of the bins. series: [{name, counts, colour, line: whether it is a line}], one over the other.
   * thresholds: [{name, value, drops: "below" | "above" | "", moved: value → …}].
   * The element has `move(place, value)`, which moves a threshold as the user does, and `scale(logarithmic)`.
   */
  page.histogram = ({ label, edges, series, thresholds = [], logarithmic = false, height = 210 }) => {
    const bins = page.bins(edges),
      plot = el("div", { class: "plot" }),
      over = el("div", { class: "over" });
    const readout = el("p", { class: "readout" });
    const figure = el("figure", { class: "chart" }, legend(series), plot, readout);
    plot.style.height = `${height}px`;
    const counts = series.map((each) =>
      Array.from({ length: bins.count + 1 }, (_, bin) => (bin === bins.count ? null : each.counts[bin] || 0)),
    );
    let chart = null,
      log = logarithmic;
    const handles = thresholds.map((each, at) => handle(each, at));

    function handle(given, at) {
      const shade = el("div", { class: `shade ${given.drops || "none"}` });
      const knob = el(
        "div",
        {
          class: `knob ${given.drops ? "" : "none"}`,
          role: "slider",
          tabindex: "0",
          "data-key": `knob/${label}/${at}`,
          "aria-label": `Threshold of ${given.name}`,
          "aria-orientation": "horizontal",
          "aria-valuemin": bins.low,
          "aria-valuemax": bins.high,
          keydown: (event) => {
            const sizes = {
              ArrowLeft: [-1, 0.1],
              ArrowDown: [-1, 0.1],
              ArrowRight: [1, 0.1],
              ArrowUp: [1, 0.1],
              PageDown: [-1, 2],
              PageUp: [1, 2],
            };
            let to = null;
            if (event.key in sizes) {
              const [way, size] = sizes[event.key];
              to = bins.step(given.value, way, event.shiftKey ? 1 : size);
            } else if (event.key === "Home") to = bins.low;
            else if (event.key === "End") to = bins.high;
            else return;
            event.preventDefault();
            move(at, to);
          },
          pointerdown: (event) => {
            knob.setPointerCapture(event.pointerId);
            knob.focus();
            event.preventDefault();
          },
          pointermove: (event) => {
            if (!knob.hasPointerCapture(event.pointerId)) return;
            const box = over.getBoundingClientRect();
            move(at, bins.value(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * bins.count));
          },
        },
        el("span", { class: "grip" }),
      );
      over.append(shade, knob);
      return { given, shade, knob };
    }

    function stand({ given, shade, knob }) {
      const share = (100 * bins.place(given.value)) / bins.count;
      knob.style.left = `${share}%`;
      knob.setAttribute("aria-valuenow", String(given.value));
      knob.setAttribute("aria-valuetext", given.says ? given.says(given.value) : page.measure(given.value));
      shade.style.left = given.drops === "above" ? `${share}%` : "0";
      shade.style.width = given.drops === "above" ? `${100 - share}%` : `${share}%`;
    }

    function move(at, value) {
      const each = handles[at];
      each.given.value = value;
      if (each.given.moved) each.given.moved(value);
      stand(each);
    }

    plot.draw = () => {
      if (!plot.isConnected) return;
      if (chart) {
        charts.delete(chart);
        chart.destroy();
      }
      chart = new uPlot(options(), [Array.from({ length: bins.count + 1 }, (_, bin) => bin), ...counts], plot);
      chart.root.setAttribute("role", "img");
      chart.root.setAttribute("aria-label", `Histogram: ${label}. The numbers are in the table below.`);
      charts.add(chart);
      plot.append(over);
      lay();
      handles.forEach(stand);
      resized.observe(plot);
    };

    function lay() {
      const ratio = devicePixelRatio || 1;
      for (const [side, length] of [
        ["left", chart.bbox.left],
        ["top", chart.bbox.top],
        ["width", chart.bbox.width],
        ["height", chart.bbox.height],
      ])
        over.style[side] = `${length / ratio}px`;
    }

    const resized = new ResizeObserver(() => {
      if (!plot.isConnected) {
        resized.disconnect();
        charts.delete(chart);
        chart.destroy();
        return;
      }
      if (plot.clientWidth > 0 && plot.clientWidth !== chart.width) {
        chart.setSize({ width: plot.clientWidth, height });
        lay();
      }
    });

    function options() {
      const grid = { stroke: () => colour("--rule"), width: 1 };
      const axis = {
        stroke: () => colour("--muted"),
        grid,
        ticks: { ...grid, size: 4 },
        font: `12px ${getComputedStyle(document.body).fontFamily}`,
      };
      const bars = uPlot.paths.bars({ align: 1, size: [1, Infinity], gap: bins.count > 100 ? 0 : 1 });
      return {
        width: plot.clientWidth,
        height,
        legend: { show: false },
        padding: [10, 14, 0, 0],
        cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { show: false } },
        scales: {
          x: { time: false, range: [0, bins.count] },
          y: log
            ? { distr: 4, asinh: 1, range: (_, low, high) => [0, high || 1] }
            : { range: (_, low, high) => [0, (high || 1) * 1.05] },
        },
        axes: [
          {
            ...axis,
            splits: (self) => ticks(self.width),
            values: (_, places) => places.map((place) => page.tick(bins.value(place))),
            gap: 3,
            size: 30,
          },
          {
            ...axis,
            ...(log
              ? {
                  splits: (self, index, low, high) =>
                    [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter((each) => each <= high),
                }
              : {}),
            values: (_, places) =>
              places.map((place) => (place === null || !Number.isInteger(place) ? "" : page.brief(place))),
            size: 52,
            gap: 4,
          },
        ],
        series: [
          {},
          ...series.map((each) => ({
            label: each.name,
            stroke: () => colour(each.colour),
            fill: each.line ? undefined : () => colour(each.colour),
            width: each.line ? 2 : 0,
            paths: each.line ? uPlot.paths.stepped({ align: 1 }) : bars,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(self) => tell(self.cursor.left, self)] },
      };
    }

    function ticks(width) {
      const apart = (55 / width) * bins.count,
        found = [];
      for (const value of round(edges)) {
        const at = bins.place(value);
        if (found.every((other) => Math.abs(at - other) >= apart)) found.push(at);
      }
      return found.sort((one, other) => one - other);
    }

    function tell(left, self) {
      const bin = left >= 0 ? Math.min(bins.count - 1, Math.floor(self.posToVal(left, "x"))) : -1;
      readout.textContent =
        bin < 0
          ? ""
          : `${page.measure(edges[bin])} to ${page.measure(edges[bin + 1])}: ${series.map((each) => `${page.count(each.counts[bin] || 0)} ${each.name}`).join(", ")}`;
    }

    figure.move = move;
    figure.scale = (logarithmic) => {
      log = logarithmic;
      if (chart) plot.draw();
    };
    seen.observe(plot);
    return figure;
  };

  /** Return round numbers within edges, the roundest first: even steps, or powers of ten and times of these. */
  function round(edges) {
    const low = edges[0],
      high = edges[edges.length - 1],
      widths = edges.slice(1).map((edge, bin) => edge - edges[bin]);
    const usual = [...widths].sort((one, other) => one - other)[widths.length >> 1];
    if (widths.filter((width) => Math.abs(width - usual) < 0.02 * usual).length > 0.85 * widths.length) {
      const rough = (high - low) / 6,
        unit = 10 ** Math.floor(Math.log10(rough)),
        step = unit * [1, 2, 5, 10].find((each) => each * unit >= rough);
      return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, place) =>
        Number(((Math.ceil(low / step) + place) * step).toPrecision(12)),
      );
    }
    const powers = [];
    for (let power = -9; power < 16; power += 1) powers.push(10 ** power);
    const sizes = [1, 5, 2, 3, 7].flatMap((times) => powers.map((power) => Number((times * power).toPrecision(6))));
    return [0, ...sizes, ...sizes.map((size) => -size)].filter((value) => value >= low && value <= high);
  }

  page.tick = (value) => {
    if (value === null || value === undefined) return "∞";
    const size = Math.abs(value);
    if (size >= 10000) return page.brief(Number(value.toPrecision(3)));
    return Number(value.toPrecision(3)).toString();
  };

  function legend(series) {
    return el(
      "figcaption",
      {},
      series.map((each) => {
        const box = el("i");
        box.style.background = `var(${each.colour})`;
        return el("span", {}, box, each.name);
      }),
    );
  }

  /** Draw all charts in the colours of now. */
  page.recolour = () => {
    for (const chart of charts) chart.redraw(false);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", page.recolour);
})();
