// The trials of a case: a table with a column per metric.
"use strict";
(() => {
  const { h, load, page, format, table, scenario } = plait;
  const AGAIN_MS = 700;

  // The completed trial with the (lower) median of a metric; its position.
  function median(data, metric) {
    const values = data.metrics[metric] ?? [];
    const measured = data.numbers.map((_, i) => i).filter((i) => values[i] !== null && values[i] !== undefined && data.errors[i] === null);
    measured.sort((a, b) => values[a] - values[b] || data.numbers[a] - data.numbers[b]);
    if (measured.length) return measured[Math.floor((measured.length - 1) / 2)];
    return data.errors.findIndex((error) => error === null);
  }

  function trialsTable(study, at, data, shown) {
    const views = shown.map((name) => data.views.find((view) => view.name === name)).filter(Boolean);
    const middle = median(data, study.primary);
    return table({
      of: `${study.id}/${at}`, name: "Trials", count: data.numbers.length,
      link: (i) => `#/s/${study.id}/c/${at}/t/${data.numbers[i]}`,
      filterText: (i) => `${data.numbers[i]} seed ${data.seeds[i]} ${data.errors[i] === null ? "completed" : data.errors[i]}`,
      columns: [
        { title: "Trial", number: true, value: (i) => data.numbers[i], text: (i) => String(data.numbers[i]).padStart(3, "0") },
        ...views.map((view, rank) => ({ absent: view.name === study.primary ? undefined : rank + 3, title: view.heading, csv: view.name, hint: `Sort by ${view.title}`, number: true,
          value: (i) => data.metrics[view.name][i], text: (i) => format.show(view.unit, data.metrics[view.name][i]) })),
        { title: "State", soft: true, text: (i) => (data.errors[i] === null ? (i === middle ? "completed, median" : "completed") : data.errors[i]) },
        { title: "Seed", number: true, absent: 99, value: (i) => data.seeds[i], text: (i) => String(data.seeds[i]) },
        plait.tray.column((i) => ({ study: study.id, case: at, trial: data.numbers[i], title: `${study.labels[at]}, trial ${data.numbers[i]}` }), (i) => `trial ${data.numbers[i]}`),
      ],
    });
  }

  page(/^s\/([0-9a-f]{12})\/c\/(\d{1,6})$/, async (id, caseText) => {
    const at = Number(caseText);
    const study = await load(`${id}/study`);
    if (study.error) throw new Error(study.error);
    if (at >= study.cases.length) throw new Error("there is no such case");
    let data = await load(`${id}/${at}`, { again: plait.live });
    if (data.error) throw new Error(data.error);
    const place = h("div");
    const note = h("p", { class: "note", "aria-live": "polite" });
    let timer = null, gone = false, rows = null;
    function fill() {
      rows = trialsTable(study, at, data, study.leading);
      plait.renew(place, rows.element);
      const middle = median(data, study.primary);
      toMedian.href = `#/s/${id}/c/${at}/t/${data.numbers[middle]}`;
      if (opened.contains(toMedian) !== middle >= 0) opened.replaceChildren(...(middle >= 0 ? [toMedian] : [])); // a link that stays keeps the focus
      note.textContent = data.pending ? `Reading ${format.plural(data.pending, "more trial")}.` : "";
      if (data.pending && plait.live && !gone) timer = setTimeout(more, AGAIN_MS);
    }
    async function more() {
      try {
        const next = await load(`${id}/${at}`, { again: true });
        if (gone || next.error) return;
        data = next;
        fill();
      } catch (error) { note.textContent = error.message; }
    }
    const opened = h("p");
    const toMedian = h("a", { class: "go" }, "Open the median trial");
    fill();
    const differs = at === study.baseline ? [] : scenario.caseDifferences(study, at, study.baseline);
    return {
      crumbs: [["Studies", "#/"], [study.title, `#/s/${id}`], [study.labels[at], `#/s/${id}/c/${at}`]],
      content: [
        h("h1", {}, study.labels[at]),
        h("p", { class: "facts" }, study.factors.map((factor) => `${format.words(factor.name)} ${factor.values[factor.of[at]] || format.MISSING}`).join(" \u00b7 ")),
        opened,
        h("section", {}, h("h2", {}, "Trials"), note, place,
          h("p", { class: "files" }, h("button", { type: "button", onclick: () => plait.save("trials.csv", rows.csv()) }, "These rows as CSV"))),
        h("section", {}, h("h2", {}, "Difference from the baseline case"),
          at === study.baseline ? h("p", { class: "note" }, "This is the baseline case.") : scenario.differencesTable(differs, `${study.labels[study.baseline]} (baseline)`, study.labels[at])),
      ],
      leave: () => { gone = true; clearTimeout(timer); },
    };
  });

  plait.medianOf = median;
})();
