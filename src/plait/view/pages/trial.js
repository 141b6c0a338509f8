// The page of a trial: its subflows over time, explanation, network with what links carried, events, and tables.
"use strict";
(() => {
  const { h, load, page, format, table, charts } = plait;
  const MOST_JUDGED = 4;
  const CHARTS = ["goodput", "rtt", "cwnd", "queue"];

  const files = (base, stem, kinds) => h("span", { class: "files" }, kinds.map((kind) => h("a", { href: `${base}/${stem}.${kind}`, download: true }, kind === "parquet" ? "Parquet" : kind.toUpperCase())));

  function overTime(trial, base, at) {
    const shared = charts.frame([trial]);
    const places = CHARTS.map((kind) => [kind, charts.overTime(trial, kind, shared, at)]).filter(([, made]) => made);
    if (!places.length) return [h("p", { class: "note" }, "No flow has a known start and end, so nothing is drawn over time.")];
    return [charts.key(trial, shared), ...places.map(([kind, made]) => h("figure", { class: "over-time" },
      h("figcaption", {}, made.title, " ", files(base, kind, ["svg", "pdf", "png"])), made.key, made.place)),
    trial.series.marks.length ? h("ul", { class: "marks" }, trial.series.marks.map(([t, text]) => h("li", {}, h("b", {}, `${format.significant(t)} s`), ` ${text}`))) : null];
  }

  function explanation(trial) {
    if (!trial.explained.length) return h("p", { class: "note" }, "No flow of this trial can be explained.");
    return [h("div", { class: "whys" }, trial.explained.map((flow) => h("article", { class: "why" },
      h("h3", {}, flow.flow),
      h("p", {}, format.together(flow.sentences.join(" "))),
      h("div", { class: "shares", "aria-hidden": "true" }, flow.shares.map((share) => h("i", { class: share.kind, title: `${share.cause}: ${share.text}`, vars: { "flex-grow": String(share.time) } }))),
      h("ul", { class: "causes" }, flow.shares.map((share) => h("li", {}, h("i", { class: share.kind }), `${share.cause}: ${share.text}`))),
      flow.shares.some((share) => share.evidence.length) ? h("details", {}, h("summary", {}, "Evidence"),
        flow.shares.filter((share) => share.evidence.length).map((share) => [h("h4", {}, share.cause), h("ul", {}, share.evidence.map((line) => h("li", {}, line))), share.remedy ? h("p", { class: "note" }, `To change this: ${share.remedy}.`) : null])) : null))),
    trial.explainedLeftOut ? h("p", { class: "note" }, `${format.plural(trial.explainedLeftOut, "more flow")}: `, h("code", {}, "plait explain --flow"), " explains any.") : null];
  }

  function network(trial, base) {
    const links = trial.links;
    const place = h("div", { "aria-live": "polite" });
    const rows = links.length ? table({
      of: base, name: "Links", count: links.length, filterText: (i) => `${links[i].name} ${links[i].label}`,
      columns: [
        { title: "Direction", text: (i) => links[i].name, node: (i) => h("button", { type: "button", class: "link", onclick: () => {
          const made = charts.linkRate(links[i]);
          place.replaceChildren(h("figure", { class: "over-time" }, h("figcaption", {}, made.title), made.place));
          plait.announce(`Throughput of ${links[i].name}`);
        } }, links[i].name) },
        { title: "Link", soft: true, absent: 2, text: (i) => links[i].label || "no limits" },
        { title: "Carried", absent: 1, number: true, value: (i) => links[i].carried, text: (i) => links[i].bytes },
        { title: "Mean", absent: 4, number: true, value: (i) => links[i].carried, text: (i) => links[i].mean },
        { title: "Of its rate", number: true, value: (i) => links[i].used, text: (i) => format.show("percent", links[i].used) },
        { title: "Dropped", absent: 3, number: true, value: (i) => links[i].dropped, text: (i) => format.show("count", links[i].dropped) },
        { title: "by a full queue", absent: 5, number: true, value: (i) => links[i].overflow, text: (i) => format.show("count", links[i].overflow) },
        { title: "Queue, mean", absent: 6, number: true, text: (i) => links[i].queueMean },
        { title: "Queue, max", absent: 7, number: true, text: (i) => links[i].queueMax },
      ],
    }) : null;
    return [
      trial.network ? [h("div", { class: "scroll drawing" }, plait.drawing(trial.network.svg)),
        h("ul", { class: "key" }, trial.network.paths.map(([label, facts, colour]) => h("li", {}, colour && h("i", { vars: { background: colour } }), `${label}: ${facts}`))),
        h("p", {}, files(base, "network", ["svg", "pdf", "png"]))] : null,
      rows ? [h("h3", {}, "What each link carried"), h("p", { class: "note" }, "A direction shows its throughput over time."), rows.element, place] : null,
    ];
  }

  const flowsTable = (trial) => h("div", { class: "scroll" }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ["Flow", "Kind", "Transport", "Congestion control", "Received", "Lasted", "Goodput", "State"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, trial.flows.slice(0, 200).map((flow) => h("tr", {}, h("th", { scope: "row" }, flow.name),
      [format.words(flow.kind), flow.transport, flow.congestion, flow.received, flow.lasted, flow.goodput, flow.state].map((text) => h("td", {}, text)))))));

  function events(trial, base, mark) {
    const { columns, values, left } = trial.events;
    const at = (name, i) => values[columns.indexOf(name)][i];
    const text = (name, i) => { const value = at(name, i); return value === null || value === undefined ? "" : String(value); };
    const rows = table({
      of: base, name: "Events", count: values[0].length,
      filterText: (i) => columns.map((name) => text(name, i)).join(" "),
      columns: columns.map((name) => name === "t_us" ? {
        title: "Time, s", csv: "t_us", number: true, value: (i) => at(name, i), text: (i) => (at(name, i) / 1e6).toFixed(6),
        node: (i) => h("button", { type: "button", class: "link", title: "Mark this time in the charts", onclick: () => mark((at(name, i) - trial.seriesStart) / 1e6) }, (at(name, i) / 1e6).toFixed(6)),
      } : { title: name.replaceAll("_", " "), csv: name, text: (i) => text(name, i), number: typeof values[columns.indexOf(name)].find((value) => value !== null) === "number", value: (i) => at(name, i) }),
    });
    return [rows.element, left ? h("p", { class: "note" }, `${left} more events are in the table below.`) : null];
  }

  function body(trial, base) {
    const over = h("div");
    const show = (at) => over.replaceChildren(...overTime(trial, base, at).filter(Boolean));
    show(null);
    const overSection = h("section", { id: "time" }, h("h2", {}, "Over time"), over);
    const mark = (at) => { show(at); overSection.scrollIntoView(); plait.announce(`Marked ${at.toFixed(3)} s in the charts`); };
    return [
      overSection,
      h("section", { id: "why" }, h("h2", {}, "Why it was not faster"), explanation(trial)),
      h("section", { id: "network" }, h("h2", {}, "Network"), network(trial, base)),
      h("section", { id: "flows" }, h("h2", {}, "Flows"), flowsTable(trial)),
      h("section", { id: "events" }, h("h2", {}, "Events"), events(trial, base, mark)),
      h("section", { id: "metrics" }, h("h2", {}, "Metrics"), h("dl", { class: "columns" }, trial.metrics.map(([title, text, name]) => h("div", {}, h("dt", { title: name }, format.together(title)), h("dd", {}, text))))),
      h("section", { id: "tables" }, h("h2", {}, "Tables"), h("ul", { class: "downloads" }, trial.tables.map(([name, height]) => h("li", {}, `${name}, ${format.plural(height, "row")} `, files(base, name, ["csv", "parquet"]))))),
    ];
  }

  page(/^s\/([0-9a-f]{12})\/c\/(\d{1,6})\/t\/(\d{1,9})$/, async (id, caseText, numberText) => {
    const at = Number(caseText), number = Number(numberText);
    const [study, trial] = await Promise.all([load(`${id}/study`), load(`${id}/${at}/${number}`)]);
    for (const data of [study, trial]) if (data.error && !("seed" in data)) throw new Error(data.error);
    const label = study.labels[at];
    const base = `files/${id}/${at}/${number}`;
    const name = `${label}, trial ${String(number).padStart(3, "0")}`;
    const sections = trial.error ? [] : body(trial, base);
    return {
      crumbs: [["Studies", "#/"], [study.title, `#/s/${id}`], [label, `#/s/${id}/c/${at}`], [`trial ${String(number).padStart(3, "0")}`, `#/s/${id}/c/${at}/t/${number}`]],
      content: [
        h("h1", {}, name),
        h("p", { class: "facts" }, trial.facts.filter(([term]) => !term.startsWith("Digest")).map(([term, text]) => `${term} ${text}`).join(" \u00b7 ")),
        trial.error ? h("p", { class: "bad" }, `This trial failed: ${trial.error}`) : h("p", { class: "result" }, trial.metrics.slice(0, Math.min(trial.judged, MOST_JUDGED)).map(([title, text], i) => [i ? `; ${title[0].toLowerCase()}${title.slice(1)} ` : `${title} `, h("strong", {}, text)])),
        (trial.gaps ?? []).map((gap) => h("p", { class: "bad" }, gap)),
        h("p", {}, h("button", { type: "button", class: "pick", onclick: () => plait.tray.add({ study: id, case: at, trial: number, title: name }) }, "Side by side")),
        sections.length ? h("nav", { class: "jump", "aria-label": "On this page" }, sections.map((section) => h("button", { type: "button", onclick: () => { section.scrollIntoView(); section.querySelector("a, button, input, summary")?.focus({ preventScroll: true }); } }, section.querySelector("h2").textContent))) : null,
        ...sections,
      ],
    };
  });

  plait.trialParts = { overTime, explanation, CHARTS };
})();
