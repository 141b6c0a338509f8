// The cases of a study: a table with a column per factor and metric, and a map of two factors.
"use strict";
plait.cases = (() => {
  const { h, format, table } = plait;
  const MOST_MAP = 40;
  const MOST_MAPS = 6;
  const ALIKE = 0.01;
  const NARROW_PX = 640;
  const chosenOf = new Map(); // by study: what its map shows

  const mean = (study, metric, i) => study.figures.metrics[metric]?.[0][i] ?? null;
  const ends = (study, metric, i) => [1, 2].map((end) => study.figures.metrics[metric]?.[end][i] ?? null);
  const viewOf = (study, metric) => study.metrics.find((view) => view.name === metric);

  // The least and the greatest mean of a metric, and the greatest end of an interval, of all cases or of some.
  function range(study, metric, cases = study.cases.keys()) {
    let low = Infinity, high = -Infinity, end = -Infinity;
    for (const i of cases) {
      const value = mean(study, metric, i);
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
      end = Math.max(end, value, ends(study, metric, i)[1] ?? value);
    }
    return low <= high ? [low, high, end] : null;
  }

  // A bar from zero to the mean, and its interval.
  function bar(study, metric, i, top) {
    const value = mean(study, metric, i);
    if (value === null || !(top > 0)) return h("span", { class: "meter" });
    const [low, high] = ends(study, metric, i);
    const share = (x) => `${Math.min(Math.max(x / top, 0), 1) * 100}%`;
    return h("span", { class: "meter", "aria-hidden": "true" },
      h("i", { vars: { width: share(value) } }),
      low === null ? null : h("b", { vars: { left: share(low), width: `${Math.max(((high - low) / top) * 100, 0.6)}%` } }));
  }

  function casesTable(study, metrics) {
    const primary = study.primary;
    let span = range(study, primary);
    const label = (i) => study.labels[i];
    const factors = study.factors.map((factor) => ({
      title: format.words(factor.name), hint: factor.key, csv: factor.key, narrow: false, text: (i) => factor.values[factor.of[i]] || format.MISSING,
    }));
    if (study.labelled) factors.length = 0;
    const first = factors.length ? [{ title: "Case", narrow: true, text: label }, ...factors] : [{ title: "Case", text: label }];
    const columns = [
      ...first,
      { title: "Trials", number: true, absent: 1, value: (i) => study.figures.trials[i],
        text: (i) => (study.figures.failed[i] ? `${study.figures.trials[i] - study.figures.failed[i]} of ${study.figures.trials[i]}` : String(study.figures.trials[i])) },
      ...metrics.map((name, rank) => {
        const view = viewOf(study, name);
        return {
          absent: name === primary ? undefined : rank + 3, title: view.heading, csv: name, hint: `Sort by ${view.title}; mean with its 95 % interval`, number: true,
          value: (i) => mean(study, name, i),
          text: (i) => format.interval(view.unit, mean(study, name, i), ...ends(study, name, i)),
        };
      }),
    ];
    if (span && span[0] >= 0) {
      columns.splice(columns.findIndex((column) => column.csv === primary) + 1, 0,
        { title: "", absent: 99, text: () => "               ", node: (i) => bar(study, primary, i, span[2]) });
    }
    columns.push(plait.tray.column((i) => ({ study: study.id, case: i, title: label(i) }), label));
    const made = table({
      of: study.id, name: "Cases", columns, count: study.cases.length,
      link: (i) => `#/s/${study.id}/c/${i}`,
      filterText: (i) => `${label(i)} ${study.factors.map((factor) => `${factor.name}=${factor.values[factor.of[i]]}`).join(" ")}`,
    });
    const { update } = made;
    return { ...made, update(count) { span = range(study, primary); update(count); } };
  }

  // A select of the values of something.
  const choose = (label, options, chosen, onchange) => h("label", {}, `${label} `, h("select", { onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: String(value) === String(chosen) }, text))));

  // The map of two factors: a cell for each case, with its mean and interval; a cell opens its trials.
  function map(study) {
    const factors = study.factors.filter((factor) => study.telling.includes(factor.key));
    if (factors.length < 1 || study.cases.length < 3 || !study.metrics.length) return null;
    const isNetwork = (factor) => study.strata.includes(factor.key);
    // Different networks have maps of their own, with their own colours.
    const bySteps = [...factors].sort((a, b) => isNetwork(a) - isNetwork(b) || b.values.length - a.values.length);
    const small = bySteps.filter((factor) => factor.values.length <= MOST_MAP);
    if (!small.length) return null;
    // A narrow window has room for the factor with fewer values, and the longer one goes down.
    const [across, down] = window.innerWidth < NARROW_PX && small.length > 1 ? [small[1], small[0]] : small;
    if (!chosenOf.has(study.id)) chosenOf.set(study.id, { metric: study.primary, column: across.key, row: down?.key ?? "", fixed: {} });
    const state = chosenOf.get(study.id);
    const place = h("div", { class: "scroll map" });
    const tools = h("div", { class: "tools" });
    const legend = h("p", { class: "note" });

    function draw() {
      const column = factors.find((factor) => factor.key === state.column);
      const row = factors.find((factor) => factor.key === state.row);
      const others = factors.filter((factor) => factor !== column && factor !== row);
      // A map for each combination of the other factors while these are few; else selects choose one.
      const every = others.reduce((product, factor) => product * factor.values.length, 1) <= MOST_MAPS;
      const apart = others.some(isNetwork);
      for (const factor of others) state.fixed[factor.key] ??= 0;
      const maps = new Map();
      for (let i = 0; i < study.cases.length; i += 1) {
        if (!every && others.some((factor) => factor.of[i] !== state.fixed[factor.key])) continue;
        const name = every ? others.map((factor) => `${format.words(factor.name)} ${factor.values[factor.of[i]] || format.MISSING}`).join(", ") : "";
        if (!maps.has(name)) maps.set(name, new Map());
        const key = `${column.of[i]} ${row ? row.of[i] : 0}`;
        if (!maps.get(name).has(key)) maps.get(name).set(key, i);
      }
      const view = viewOf(study, state.metric);
      const spans = new Map([...maps].map(([name, at]) => [name, range(study, state.metric, apart ? [...at.values()] : undefined)]));
      const span = range(study, state.metric);
      const measured = study.metrics.filter((metric) => !metric.name.includes("."));
      plait.renew(tools,
        choose("Metric", measured.map((metric) => [metric.name, metric.title]), state.metric, (value) => { state.metric = value; draw(); }),
        choose("across", small.map((factor) => [factor.key, format.words(factor.name)]), state.column, (value) => {
          if (value === state.row) state.row = state.column;
          state.column = value;
          draw();
        }),
        small.length > 1 ? choose("down", small.map((factor) => [factor.key, format.words(factor.name)]), state.row, (value) => {
          if (value === state.column) state.column = state.row;
          state.row = value;
          draw();
        }) : null,
        ...(every ? [] : others).map((factor) => choose(format.words(factor.name), factor.values.map((value, number) => [number, value]), state.fixed[factor.key],
          (value) => { state.fixed[factor.key] = Number(value); draw(); })));
      const cell = (at, c, r, span) => {
        const i = at.get(`${c} ${r}`);
        const value = i === undefined ? null : mean(study, state.metric, i);
        if (i === undefined) return h("td", { class: "empty" });
        // Values that hardly differ have one colour, so that noise does not look like a result.
        const alike = span && span[1] - span[0] < ALIKE * Math.abs(span[1]);
        const share = value === null || !span ? 0 : alike ? 0.3 : (value - span[0]) / (span[1] - span[0]);
        const [low, high] = ends(study, state.metric, i);
        const text = format.show(view.unit, value);
        const half = low === null || value === null ? "" : format.half(view.unit, value, low, high);
        return h("td", { class: share > 0.5 ? "dark" : null, vars: { "--share": String(share) } },
          h("a", { href: `#/s/${study.id}/c/${i}`, "aria-label": `${study.labels[i]}: ${text} ${half}`, title: study.labels[i] },
            h("span", {}, text), half ? h("small", {}, half) : null));
      };
      const rows = row ? row.values.map((value, number) => [value, number]) : [["", 0]];
      if (!maps.size) plait.renew(place, h("p", { class: "note" }, `No case has ${others.map((factor) => `${format.words(factor.name)} ${factor.values[state.fixed[factor.key]] || format.MISSING}`).join(" and ")}: choose another value.`));
      else plait.renew(place, ...[...maps].map(([name, at]) => h("table", { class: "heat", "aria-label": `${view.title} by ${format.words(column.name)}${row ? ` and ${format.words(row.name)}` : ""}${name ? `, ${name}` : ""}` },
        name ? h("caption", {}, name) : null,
        h("thead", {}, row ? h("tr", {}, h("th", {}), h("th", { colspan: column.values.length, class: "axis" }, format.words(column.name))) : null,
          h("tr", {}, h("th", { class: "axis" }, format.words(row ? row.name : column.name)), column.values.map((value) => h("th", { scope: "col" }, value || format.MISSING)))),
        h("tbody", {}, rows.map(([value, number]) => h("tr", {}, h("th", { scope: "row" }, value || ""), column.values.map((_, c) => cell(at, c, number, spans.get(name)))))))));
      const better = { more: "more is better", less: "less is better" }[view.better];
      legend.textContent = span ? `${view.title}: mean over trials with half its 95 % interval. ${apart ? "Colours go from the least to the greatest value of each map, which is a network" : `The strongest colour is ${format.show(view.unit, span[1])}, the faintest ${format.show(view.unit, span[0])}`}${better ? `; ${better}` : ""}. A cell opens its trials.` : "Nothing was measured yet.";
    }
    draw();
    return { element: h("section", { id: "map" }, h("h2", {}, "Map"), tools, place, legend), draw };
  }

  return { casesTable, map, mean, ends, viewOf, choose };
})();
