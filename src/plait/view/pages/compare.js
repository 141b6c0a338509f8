// Two cases, trials or studies side by side, on one time axis; and the tray that holds the first choice.
"use strict";
(() => {
  const { h, load, page, format, charts, scenario } = plait;

  plait.tray = (() => {
    let chosen = [];
    const place = () => document.querySelector(".tray");
    const path = (item) => [item.study, item.case, item.trial].filter((part) => part !== undefined).join(".");
    const kind = (item) => (item.case === undefined ? "study" : "case");
    function show() {
      const tray = place();
      tray.hidden = !chosen.length || /^#\/(compare|studies)\//.test(location.hash); // that page shows them
      const ready = chosen.length === 2;
      tray.replaceChildren(...(chosen.length ? [
        h("span", {}, "Side by side: "), ...chosen.map((item) => h("span", { class: "chosen" }, `${item.title} `, h("button", { type: "button", "aria-label": `Remove ${item.title}`, onclick: () => { chosen = chosen.filter((other) => other !== item); show(); } }, "\u00d7"))),
        ready ? h("a", { class: "go", href: `#/${kind(chosen[0]) === "study" ? "studies" : "compare"}/${path(chosen[0])}/${path(chosen[1])}` }, "Show") : h("span", { class: "note" }, "choose another"),
      ] : []));
    }
    window.addEventListener("hashchange", show);
    return {
      // A column with a button in each row, which adds `item(i)`; `label(i)` is the row's name.
      column: (item, label) => ({ title: " ", stick: true, absent: 2, text: () => "side by side", value: () => null,
        node: (i) => h("button", { type: "button", class: "pick", "aria-label": `${label(i)}: side by side`, onclick: () => plait.tray.add(item(i)) }, "side by side") }),
      add(item) {
        chosen = chosen.filter((other) => kind(other) === kind(item) && path(other) !== path(item)).slice(-1);
        chosen.push(item);
        show();
        plait.announce(chosen.length === 2 ? "Two are chosen; Show is at the end of the page" : `${item.title} is chosen; choose another`);
        if (chosen.length === 2) place().querySelector("a.go").focus();
      },
    };
  })();

  const AGAIN_MS = 300, LONGEST_MS = 600_000;
  // Data after all of their trials were read. Whoever leaves the page waits no longer.
  async function read(key, title) {
    const here = location.hash, begin = performance.now();
    for (;;) {
      const data = await load(key, { again: plait.live });
      if (!data.pending || !plait.live || location.hash !== here) return data;
      if (performance.now() - begin > LONGEST_MS) throw new Error(`${title}: plait still reads ${format.plural(data.pending, "trial")}; open this page again later`);
      await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
    }
  }

  async function side(text) {
    const [id, caseText, trialText] = text.split(".");
    const study = await load(`${id}/study`);
    if (study.error) throw new Error(study.error);
    const at = Number(caseText);
    if (!(at < study.cases.length)) throw new Error("there is no such case");
    let number = Number(trialText), median = false;
    if (trialText === undefined) {
      const data = await read(`${id}/${at}`, study.labels[at]);
      const i = plait.medianOf(data, study.primary);
      if (i < 0) throw new Error(`${study.labels[at]} has no completed trial`);
      number = data.numbers[i];
      median = true;
    }
    const trial = await load(`${id}/${at}/${number}`);
    if (trial.error) throw new Error(`${study.labels[at]}, trial ${number}: ${trial.error}`);
    return { id, study, at, number, median, trial, label: study.labels[at] };
  }

  page(/^compare\/([0-9a-f]{12}\.\d{1,6}(?:\.\d{1,9})?)\/([0-9a-f]{12}\.\d{1,6}(?:\.\d{1,9})?)$/, async (first, second) => {
    const sides = await Promise.all([side(first), side(second)]);
    const shared = charts.frame(sides.map((one) => one.trial));
    const same = sides[0].id === sides[1].id;
    const title = (one) => (same ? one.label : `${one.study.title}: ${one.label}`);
    const heads = sides.map((one) => h("div", {}, h("h2", {}, h("a", { href: `#/s/${one.id}/c/${one.at}/t/${one.number}` }, title(one))),
      h("p", { class: "facts" }, `trial ${String(one.number).padStart(3, "0")}${one.median ? ", the median" : ""}, seed ${one.trial.seed}`), charts.key(one.trial, shared)));
    const rows = plait.trialParts.CHARTS.map((kind) => {
      const made = sides.map((one) => charts.overTime(one.trial, kind, shared));
      if (made.every((chart) => chart === null)) return null;
      return h("div", { class: "pair" }, made.map((chart, i) => h("figure", { class: "over-time" }, h("figcaption", {}, chart ? chart.title : "not measured", h("span", { class: "whose" }, `: ${title(sides[i])}`)), chart?.key, chart?.place)));
    });
    const texts = sides.map((one) => new Map(one.trial.metrics.map(([name, text, key]) => [key, [name, text]])));
    const keys = [...new Set(texts.flatMap((map) => [...map.keys()]))];
    const differs = same
      ? scenario.caseDifferences(sides[0].study, sides[1].at, sides[0].at)
      : [...scenario.differences(sides[0].study.scenario, sides[1].study.scenario), ...scenario.differences(Object.fromEntries(scenario.settings(sides[0].study, sides[0].at)), Object.fromEntries(scenario.settings(sides[1].study, sides[1].at)))];
    return {
      crumbs: [["Studies", "#/"], ["Side by side", `#/compare/${first}/${second}`]],
      content: [
        h("h1", {}, "Side by side"),
        h("div", { class: "pair" }, heads),
        h("section", { id: "time" }, h("h2", {}, "Over time, on the same axes"), rows),
        h("section", { id: "why" }, h("h2", {}, "Why they were not faster"), h("div", { class: "pair" }, sides.map((one) => h("div", {}, plait.trialParts.explanation(one.trial))))),
        h("section", { id: "metrics" }, h("h2", {}, "Metrics"), h("div", { class: "scroll" }, h("table", { class: "plain" },
          h("thead", {}, h("tr", {}, h("th", {}), sides.map((one) => h("th", { scope: "col" }, title(one))))),
          h("tbody", {}, keys.map((key) => h("tr", {}, h("th", { scope: "row" }, (texts[0].get(key) ?? texts[1].get(key))[0]), texts.map((map) => h("td", { class: "number" }, map.get(key)?.[1] ?? format.MISSING)))))))),
        h("section", { id: "scenario" }, h("h2", {}, "Differences of the scenario"), scenario.differencesTable(differs, title(sides[0]), title(sides[1]))),
      ],
    };
  });

  // A study after all of its trials were read; one with a summary is whole at once.
  async function whole(id) {
    const study = await load(`${id}/study`);
    if (study.error || study.summarised || !plait.live) return study;
    await read(`${id}/live`, study.title);
    return load(`${id}/study`, { again: true });
  }

  // Two studies: the cases that both have, with the mean of each and their ratio; a row shows both over time.
  page(/^studies\/([0-9a-f]{12})\/([0-9a-f]{12})$/, async (first, second) => {
    const [a, b] = await Promise.all([whole(first), whole(second)]);
    for (const study of [a, b]) if (study.error) throw new Error(study.error);
    const place = new Map(b.cases.map((name, i) => [name, i]));
    const both = a.cases.map((name, i) => [i, place.get(name)]).filter(([, j]) => j !== undefined);
    const shared = a.metrics.filter((view) => b.figures.metrics[view.name]);
    const state = { metric: (shared.find((view) => view.name === a.primary) ?? shared[0])?.name };
    const where = h("div");
    function draw() {
      const view = plait.cases.viewOf(a, state.metric);
      const text = (study, i) => format.interval(view.unit, plait.cases.mean(study, view.name, i), ...plait.cases.ends(study, view.name, i));
      const ratio = (at) => { const [x, y] = [plait.cases.mean(a, view.name, both[at][0]), plait.cases.mean(b, view.name, both[at][1])]; return x && y !== null ? y / x : null; };
      const rows = plait.table({
        of: `${first}/${second}`, name: "Cases of both studies", count: both.length,
        link: (at) => `#/compare/${first}.${both[at][0]}/${second}.${both[at][1]}`,
        filterText: (at) => a.labels[both[at][0]],
        columns: [
          { title: "Case", narrow: false, text: (at) => a.labels[both[at][0]] },
          { title: "Case", narrow: true, text: (at) => a.labels[both[at][0]] },
          { absent: 2, title: `first: ${view.heading}`, number: true, value: (at) => plait.cases.mean(a, view.name, both[at][0]), text: (at) => text(a, both[at][0]) },
          { absent: 1, title: `second: ${view.heading}`, number: true, value: (at) => plait.cases.mean(b, view.name, both[at][1]), text: (at) => text(b, both[at][1]) },
          { title: "Second against first", number: true, value: ratio, text: (at) => (ratio(at) === null ? format.MISSING : format.change(ratio(at))) },
        ],
      });
      where.replaceChildren(rows.element, h("p", { class: "files" }, h("button", { type: "button", onclick: () => plait.save("studies.csv", rows.csv()) }, "These rows as CSV")));
    }
    const lacking = !both.length ? "They have no case in common. Choose a case of each to see the two over time." : !shared.length ? "They have no metric in common." : null;
    if (!lacking) draw();
    const differs = scenario.differences(a.scenario, b.scenario);
    const drawing = /^figures(\.|$)/;
    const name = (study) => `${study.title} (${study.folder})`;
    return {
      crumbs: [["Studies", "#/"], ["Side by side", `#/studies/${first}/${second}`]],
      content: [
        h("h1", {}, "Two studies side by side"),
        h("dl", { class: "facts-list" }, [["First", a], ["Second", b]].map(([term, study]) => [h("dt", {}, term), h("dd", {}, h("a", { href: `#/s/${study.id}` }, name(study)))])),
        h("section", { id: "cases" }, h("h2", {}, "Cases of both studies"),
          lacking ? h("p", { class: "note" }, lacking) : [
            h("div", { class: "tools" }, plait.cases.choose("Metric", shared.map((view) => [view.name, view.title]), state.metric, (value) => { state.metric = value; draw(); })),
            where,
            h("p", { class: "note" }, "Means with their 95 % intervals. ", h("code", {}, "plait compare"), " tests the differences."),
          ]),
        h("section", { id: "scenario" }, h("h2", {}, "Differences of the scenarios"), scenario.differencesTable(differs.filter(([path]) => !drawing.test(path)), "First", "Second"),
          differs.some(([path]) => drawing.test(path)) ? h("p", { class: "note" }, "Their figures differ too; those change no result.") : null),
      ],
    };
  });
})();
