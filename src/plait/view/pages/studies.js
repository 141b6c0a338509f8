// The list of studies.
"use strict";
(() => {
  const { h, load, page, format } = plait;

  const phrases = (pieces) => pieces.map(([text, stressed]) => (stressed ? h("strong", {}, format.together(text)) : format.together(text)));

  function card(study) {
    const address = `#/s/${study.id}`;
    if (study.error) {
      return h("li", { class: "card" }, h("h2", {}, h("a", { href: address }, study.folder)), h("p", { class: "bad" }, study.error));
    }
    const facts = [format.plural(study.caseCount, "case"), `${format.plural(study.repeat, "trial")} each`, study.kernel, study.engine];
    return h("li", { class: "card" },
      h("h2", {}, h("a", { href: address }, study.title), study.running ? h("span", { class: "running" }, "running") : null),
      h("p", { class: "facts" }, [study.folder, study.apart, ...facts].filter(Boolean).join(" \u00b7 ")),
      study.result ? h("p", { class: "result" }, phrases(study.result.headline)) : h("p", { class: "note" }, study.running ? "It runs; open it to see its trials as they end." : "Its summary is missing or damaged; open it to see its trials, or what is wrong."),
      h("button", { type: "button", class: "pick", onclick: () => plait.tray.add({ study: study.id, title: study.title }) }, "Side by side"));
  }

  page(/^$/, async () => {
    const { studies } = await load("studies", { again: plait.live });
    const places = studies.map(card);
    const filter = h("input", {
      type: "search", placeholder: "Filter", "aria-label": "Filter the studies", maxlength: 200,
      oninput: () => {
        const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        studies.forEach((study, at) => {
          const text = `${study.title ?? ""} ${study.folder} ${study.apart ?? ""} ${study.scenarioName ?? ""}`.toLowerCase();
          places[at].hidden = !words.every((word) => text.includes(word));
        });
      },
    });
    return {
      crumbs: [["Studies", "#/"]],
      content: [
        h("h1", {}, "Studies"),
        studies.length ? h("div", { class: "tools" }, filter, h("span", { class: "note" }, format.plural(studies.length, "study").replace("studys", "studies"))) : h("p", {}, "There is no study below this folder. ", h("code", {}, "plait run SCENARIO --out DIR"), " makes one."),
        h("ul", { class: "cards" }, places),
      ],
    };
  });

  plait.phrases = phrases;
})();
