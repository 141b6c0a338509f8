// The page of a study: headline, map, cases, figures, checks and scenario.
"use strict";
(() => {
  const { h, load, page, format, cases } = plait;
  const MOST_FINDINGS = 5;
  const FIRST_FINDINGS = 4;

  // What a reader can do about a study without figures: wait, continue it, or have them drawn.
  function waiting(study) {
    if (study.running) return "plait draws the figures when all trials have ended.";
    if (study.summarised) return ["This folder has no figures; ", h("code", {}, "plait report DIR"), " draws them."];
    return ["The study has not ended: it has no report. This command continues it: ", h("code", {}, study.command), "; ", h("code", {}, "plait report DIR"), " reports the trials so far."];
  }

  function figures(study) {
    const links = (figure) => figure.formats.map((kind) => h("a", { href: `files/${study.id}/figures/${encodeURIComponent(figure.name)}.${kind}`, download: true }, kind.toUpperCase()));
    if (!study.drawn.length) return h("section", { id: "figures" }, h("h2", {}, "Figures"), h("p", { class: "note" }, waiting(study)));
    return h("section", { id: "figures" }, h("h2", {}, "Figures"),
      h("p", { class: "note" }, "As in the report, on white, for papers and slides."),
      h("div", { class: "figures" }, [...study.drawn].sort((a, b) => a.name.endsWith("-over-time") - b.name.endsWith("-over-time")).map((figure) => h("figure", {},
        // SVG leaves the font to the browser, whose words can be wider than the room that was left for them.
        h("img", { src: `files/${study.id}/figures/${encodeURIComponent(figure.name)}.${figure.formats.includes("png") ? "png" : "svg"}`, alt: figure.name, loading: "lazy" }),
        h("figcaption", {}, figure.name, " ", h("span", { class: "files" }, links(figure)))))));
  }

  function checks(study) {
    if (!study.cautions.length) return null;
    const kinds = new Map();
    for (const caution of study.cautions) kinds.set(caution.code, [...(kinds.get(caution.code) ?? []), caution]);
    const text = (caution) => [caution.text, caution.remedy ? h("span", { class: "note" }, ` ${caution.remedy}`) : null];
    return h("section", { id: "checks" }, h("h2", {}, "Check before trusting the result"),
      h("ul", { class: "checks" }, [...kinds.values()].map(([first, ...others]) => h("li", { class: first.loud ? "bad" : null }, text(first),
        others.length ? h("details", {}, h("summary", {}, `${others.length} more of this kind (${first.code})`), h("ul", {}, others.slice(0, 200).map((other) => h("li", {}, text(other))))) : null))));
  }

  // What `plait advise` found with this study and its other rounds.
  function advice({ problem, goal, metric, rows, sentences }) {
    const section = (...content) => h("section", { id: "advice" }, h("h2", {}, "What would help"), content);
    if (problem) return section(h("p", { class: "bad" }, problem));
    const line = ({ name, words, best, value, against, trials }) => h("tr", {},
      h("td", {}, best ? h("strong", {}, name) : name), h("td", {}, words), [value, against, trials].map((text) => h("td", { class: "number" }, format.together(String(text)))));
    return section(h("p", { class: "note" }, "What ", h("code", {}, "plait advise"), ` found for ${goal}, over all of its rounds. `, h("code", { class: "whole" }, "plait advise LINES --apply HOST --print"), " prints the commands."),
      h("div", { class: "findings" }, sentences.map((text) => h("p", {}, format.together(text)))),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes that were tried" }, h("table", { class: "tried" },
        h("thead", {}, h("tr", {}, ["Change", "In words"].map((text) => h("th", {}, text)), [metric, "Against now", "Seeds"].map((text) => h("th", { class: "number" }, text)))),
        h("tbody", {}, rows.map(line)))));
  }

  // The tests of a study with many factors are many: those after the first wait behind a click, so that the map is near.
  function findings(sentences) {
    const made = sentences.map((text) => h("p", {}, format.together(text)));
    if (made.length <= MOST_FINDINGS) return h("div", { class: "findings" }, made);
    return [h("div", { class: "findings" }, made.slice(0, FIRST_FINDINGS)),
      h("details", { class: "further" }, h("summary", {}, `${made.length - FIRST_FINDINGS} more findings`), h("div", { class: "findings" }, made.slice(FIRST_FINDINGS)))];
  }

  const tables = (id, name, table) => h("p", { class: "files" },
    h("button", { type: "button", onclick: () => plait.save(`${name}.csv`, table.csv()) }, "These rows as CSV"),
    ["cases", "trials"].flatMap((stem) => ["csv", "parquet"].map((kind) =>
      h("a", { href: `files/${id}/${stem}.${kind}`, download: true }, `all ${stem}, ${kind === "csv" ? "CSV" : "Parquet"}`))));

  page(/^s\/([0-9a-f]{12})$/, async (id) => {
    const study = await load(`${id}/study`, { again: plait.live });
    if (study.error) throw new Error(study.error);
    const rows = cases.casesTable(study, study.leading);
    const map = cases.map(study);
    const headline = h("div", { class: study.summarised ? "headline" : null });
    const facts = [study.folder, format.plural(study.caseCount, "case"), `${format.plural(study.repeat, "trial")} each`, `seed ${study.seed}`, study.kernel, study.engine && `${study.engine} engine`];
    const live = plait.liveSection(study, () => { rows.update(study.cases.length); map?.draw(); });
    const sections = [
      study.advice && advice(study.advice),
      map?.element,
      h("section", { id: "cases" }, h("h2", {}, "Cases"), rows.element, tables(id, "cases", rows)),
      figures(study), checks(study), plait.scenario.section(study),
    ].filter(Boolean);
    const result = study.summarised ? load(`${id}/result`) : Promise.resolve({});
    result.then(({ headline: pieces, sentences, digest }) => {
      if (!pieces) return;
      headline.replaceChildren(h("p", { class: "result" }, plait.phrases(pieces)), ...[findings(sentences)].flat(),
        h("p", { class: "note" }, `Digest of the data: ${digest}`));
    }).catch(() => {});
    return {
      crumbs: [["Studies", "#/"], [study.title, `#/s/${id}`]],
      content: [
        h("h1", {}, study.title, study.running ? h("span", { class: "running" }, "running") : null),
        h("p", { class: "facts" }, facts.filter(Boolean).join(" \u00b7 ")),
        h("nav", { class: "jump", "aria-label": "On this page" }, sections.map((section) =>
          h("button", { type: "button", onclick: () => { section.scrollIntoView(); section.querySelector("a, button, input, select, summary")?.focus({ preventScroll: true }); } }, section.querySelector("h2").textContent))),
        headline, live.element, ...sections,
      ],
      leave: live.stop,
    };
  });
})();
