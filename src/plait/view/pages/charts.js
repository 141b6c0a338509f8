// Charts over time, drawn by Vega-Lite without evaluating code, in the colours of the theme.
"use strict";
plait.charts = (() => {
  const { h, load, script, format } = plait;
  const drawn = new Set();
  let library = null;

  const KINDS = {
    goodput: { title: "Goodput", of: (s) => (s.others ? [...s.subflows, s.others] : s.subflows), unit: "rate", steps: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]] },
    rtt: { title: "Round-trip time", of: (s) => s.subflows, steps: [[1e6, "s"], [1e3, "ms"]] },
    cwnd: { title: "Congestion window", of: (s) => s.subflows, steps: [[1, "segments"]] },
    queue: { title: "Queue", of: (s) => s.queues, steps: [[1e6, "MB"], [1e3, "kB"], [1, "B"]] },
  };

  const themes = () => plait.themes;
  const colours = () => themes()[document.documentElement.dataset.theme] ?? themes().light;

  function paint(node, tokens) {
    if (typeof node === "string") return node[0] === "@" && node.slice(1) in tokens ? tokens[node.slice(1)] : node;
    if (Array.isArray(node)) return node.map((child) => paint(child, tokens));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, paint(child, tokens)]));
    }
    return node;
  }

  async function embed(place) {
    library ??= script("assets/vega.js");
    await library;
    if (!place.isConnected) { drawn.delete(place); return; }
    const tokens = colours();
    // Data stay as they are: a label that begins with @ is no colour.
    const { datasets, ...rest } = place.spec;
    const spec = { ...paint(rest, tokens), datasets, config: paint(themes().config, tokens) };
    place.view?.finalize();
    const result = await window.vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
      tooltip: { theme: "custom", disableDefaultStyle: true },
      loader: { load: () => Promise.reject(new Error("charts load nothing")) },
    });
    place.view = result;
    drawn.add(place);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      embed(entry.target);
    }
  }, { rootMargin: "300px" });

  // A place into which a specification is drawn when it comes into view.
  function chart(spec, label) {
    const place = h("div", { class: "chart", role: "img", "aria-label": label });
    place.spec = spec;
    seen.observe(place);
    return place;
  }

  // A place for a chart of the data set `rows`, as wide as the page leaves it.
  const placed = (spec, height, label) => chart({ data: { name: "rows" }, width: "container", height, autosize: { type: "fit-x", contains: "padding" }, ...spec }, label);

  const seconds = (scale, axis) => ({ field: "t", type: "quantitative", scale, axis: { title: null, tickCount: 6, labelExpr: "datum.label + ' s'", ...axis } });
  const upwards = (top, axis) => ({ field: "v", type: "quantitative", scale: { domain: [0, top], nice: false }, axis: { title: null, tickCount: 4, minExtent: 34, ...axis } });

  // The divisor and unit for values up to `top`.
  const unitFor = (steps, top) => steps.find(([least]) => top >= least) ?? steps[steps.length - 1];

  // A value in another unit; what was not measured is no zero.
  const inUnit = (value, divisor) => (value === null ? null : value / divisor);

  function redraw() {
    for (const place of [...drawn]) {
      if (place.isConnected) embed(place);
      else { place.view?.finalize(); drawn.delete(place); }
    }
  }

  const peak = (lines, kind) => {
    if (kind !== "goodput") return Math.max(0, ...lines.map((line) => Math.max(0, ...line[kind][1])));
    const sums = [];
    for (const line of lines) line[kind][1].forEach((value, at) => { sums[at] = (sums[at] ?? 0) + (value ?? 0); });
    return sums.reduce((most, sum) => Math.max(most, sum), 0);
  };

  // The colour of each label, the same in all trials that have it. Labels keep the colours of their trials unless these
  // disagree.
  function palette(lists) {
    const colours = new Map(), used = new Map();
    let agreed = true;
    for (const { label, colour } of lists.flat()) {
      if ((colours.get(label) ?? colour) !== colour || (used.get(colour) ?? label) !== label) agreed = false;
      colours.set(label, colour);
      used.set(colour, label);
    }
    if (agreed && lists.flat().every((line) => line.colour !== null)) return colours;
    const labels = lists.map((lines) => lines.map((line) => line.label));
    const every = [...new Set(labels.flat())];
    if (every.length <= 8) return new Map(every.map((label, at) => [label, at]));
    const everywhere = labels[0].filter((label) => labels.every((own) => own.includes(label)));
    // Of more labels than colours, what one trial alone has may share its colour with another trial's, but with none of
    // its own.
    const further = labels.flatMap((own) => own.filter((label) => !everywhere.includes(label)).map((label, at) => [label, (everywhere.length + at) % 8]));
    return new Map([...everywhere.map((label, at) => [label, at % 8]), ...further]);
  }

  // What several trials share: the length of the time axis, the top and unit of each kind of chart, and the colours.
  function frame(trials) {
    const shared = {
      seconds: Math.max(0.001, ...trials.map((trial) => trial.series.seconds ?? 0)), kinds: {},
      subflows: palette(trials.map((trial) => trial.series.subflows)),
      queues: palette(trials.map((trial) => trial.series.queues.map((line) => ({ ...line, colour: null })))),
    };
    for (const [kind, { of, steps }] of Object.entries(KINDS)) {
      let top = Math.max(0, ...trials.map((trial) => peak(of(trial.series), kind)));
      if (kind === "goodput") {
        const ideals = trials.map((trial) => trial.ideal).filter((ideal) => ideal);
        // What waited for a lost segment arrives in a burst far above the rate of the links, and leaves the chart.
        if (ideals.length === trials.length) top = Math.min(Math.max(top, ...ideals), 1.25 * Math.max(...ideals));
      }
      const [divisor, unit] = unitFor(steps, top);
      shared.kinds[kind] = { top: (top / divisor) * 1.08 || 1, divisor, unit };
    }
    return shared;
  }

  const token = (line) => (line.colour === null ? "faint" : `path${line.colour}`);

  const entries = (lines) => lines.map((line) => h("li", {}, h("i", { vars: { background: `var(--${token(line)})` } }), line.label));

  const painted = (lines, shared) => lines.map((line) => ({ ...line, colour: line.colour === null ? null : shared.subflows.get(line.label) }));

  // Whether each queue has the colour of the only path that it is part of, so that it needs no key.
  function pathsNameQueues(trial, queues) {
    const known = new Set(queues.map((queue) => queue.colour));
    return trial.flows.length === 1 && !known.has(null) && known.size === queues.length;
  }

  // One chart of one trial; null when nothing of the kind was measured.
  function overTime(trial, kind, shared, at = null) {
    const { title, of } = KINDS[kind];
    let lines = of(trial.series).filter((line) => line[kind][0].length);
    if (!lines.length) return null;
    const named = kind === "queue" && !pathsNameQueues(trial, lines);
    if (named) lines = lines.map((line) => ({ ...line, colour: shared.queues.get(line.label) }));
    else if (kind !== "queue") lines = painted(lines, shared);
    const { top, divisor, unit } = shared.kinds[kind];
    const rows = [];
    lines.forEach((line, number) => {
      const [times, values] = line[kind];
      times.forEach((t, i) => rows.push({ t, v: inUnit(values[i], divisor), s: number }));
      if (kind === "goodput") rows.push({ t: trial.series.seconds, v: inUnit(values[values.length - 1], divisor), s: number });
    });
    const names = lines.map((line) => line.label);
    const x = seconds({ domain: [0, shared.seconds], nice: false }, { labelFlush: true });
    const y = upwards(top);
    const colour = { field: "s", type: "ordinal", legend: null,
      scale: { domain: lines.map((_, number) => number), range: lines.map((line) => `@${token(line)}`) } };
    const stacked = kind === "goodput";
    const layers = [{
      mark: stacked ? { type: "area", interpolate: "step-after", clip: true, opacity: 0.9 } : { type: "line", clip: true },
      encoding: { x, y: stacked ? { ...y, stack: "zero" } : y, color: colour },
    }, {
      transform: [{ pivot: "s", value: "v", groupby: ["t"] }],
      mark: { type: "rule", color: "@muted" },
      encoding: {
        x,
        opacity: { condition: { param: "near", value: 0.6, empty: false }, value: 0 },
        tooltip: [{ field: "t", title: "time, s", format: ".3~f" },
          ...names.map((name, number) => ({ field: String(number), title: `${name.slice(0, 60)}, ${unit}`, format: ".4~g", type: "quantitative" }))],
      },
      params: [{ name: "near", select: { type: "point", on: "pointerover", nearest: true, fields: ["t"], clear: "pointerout" } }],
    }];
    const datasets = { rows };
    const marks = trial.series.marks.map(([t, text]) => ({ t, text }));
    if (at !== null) marks.push({ t: at, text: "the chosen event" });
    if (marks.length) {
      datasets.marks = marks;
      layers.push({ data: { name: "marks" }, mark: { type: "rule", strokeDash: [2, 3], color: "@ink", strokeWidth: 1.2 },
        encoding: { x, tooltip: [{ field: "text", title: "event" }, { field: "t", title: "time, s" }] } });
    }
    if (stacked && trial.ideal) {
      datasets.ideal = [{ v: trial.ideal / divisor }];
      layers.push({ data: { name: "ideal" }, mark: { type: "rule", strokeDash: [5, 3], color: "@muted" }, encoding: { y } });
    }
    return { title: `${title}, ${unit}`, place: placed({ datasets, layer: layers }, 130, `${title} over time`), key: named ? h("ul", { class: "key" }, entries(lines)) : null };
  }

  // The rate of one link direction over time.
  function linkRate(link) {
    const [times, values] = link.rate;
    const top = Math.max(1, link.limit ?? 0, ...values);
    const [divisor, unit] = unitFor(KINDS.goodput.steps, top);
    const datasets = { rows: times.map((t, i) => ({ t, v: inUnit(values[i], divisor) })) };
    const y = upwards((top / divisor) * 1.05);
    const layer = [{ mark: { type: "area", interpolate: "step-after", color: "@path0" },
      encoding: { x: seconds({}), y, tooltip: [{ field: "t", title: "time, s" }, { field: "v", title: unit, format: ".4~g" }] } }];
    if (link.limit) {
      datasets.limit = [{ v: link.limit / divisor }];
      layer.push({ data: { name: "limit" }, mark: { type: "rule", strokeDash: [5, 3], color: "@muted" }, encoding: { y } });
    }
    return { title: `${link.name}: throughput, ${unit}`, place: placed({ datasets, layer }, 110, `Throughput of ${link.name}`) };
  }

  // The goodput so far of a trial that runs.
  function growing(lines) {
    const top = Math.max(1, ...lines.flatMap(([, values]) => values));
    const [divisor, unit] = unitFor(KINDS.goodput.steps, top);
    const rows = lines.flatMap(([times, values], s) => times.map((t, i) => ({ t, v: inUnit(values[i], divisor), s })));
    return { title: `Goodput so far, ${unit}`, place: placed({
      datasets: { rows },
      mark: { type: "line" },
      encoding: {
        x: seconds({ nice: false }, { tickCount: 5 }),
        y: { field: "v", type: "quantitative", scale: { zero: true }, axis: { title: null, tickCount: 3 } },
        color: { field: "s", type: "ordinal", legend: null, scale: { range: ["@path0", "@path1", "@path2", "@path3", "@path4", "@path5", "@path6", "@path7"] } },
      },
    }, 90, "Goodput so far") };
  }

  function key(trial, shared) {
    const { subflows, others } = trial.series;
    return h("ul", { class: "key" }, entries(painted(others ? [...subflows, { ...others, label: `${others.label}, in the goodput alone` }] : subflows, shared)));
  }

  return { KINDS, frame, overTime, linkRate, growing, key, redraw };
})();
