// The scenario beside the results: its text, what varies, and how two scenarios differ.
"use strict";
plait.scenario = (() => {
  const { h } = plait;
  const MOST = 20_000;

  // Every field of a scenario by its path, with its value as text.
  function flat(value, path = "", into = new Map()) {
    if (into.size > MOST) return into;
    if (value && typeof value === "object" && Object.keys(value).length) {
      for (const [key, inner] of Object.entries(value)) flat(inner, path ? `${path}.${key}` : key, into);
    } else {
      into.set(path, value && typeof value === "object" ? (Array.isArray(value) ? "[]" : "{}") : String(value));
    }
    return into;
  }

  // The fields that two scenarios do not share, or do not agree in.
  function differences(a, b) {
    const first = flat(a), second = flat(b);
    const paths = new Set([...first.keys(), ...second.keys()]);
    return [...paths].filter((path) => first.get(path) !== second.get(path)).map((path) => [path, first.get(path), second.get(path)]);
  }

  const shown = (text) => (text === undefined || text === "" ? "\u2013" : text);

  function differencesTable(rows, a, b) {
    if (!rows.length) return h("p", { class: "note" }, "They do not differ.");
    return h("div", { class: "scroll" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, ["Field", a, b].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.slice(0, 500).map(([path, x, y]) => h("tr", {}, h("th", { scope: "row" }, path), h("td", {}, shown(x)), h("td", {}, shown(y)))))),
    rows.length > 500 ? h("p", { class: "note" }, `${rows.length - 500} more fields differ.`) : null);
  }

  // How the settings of a case differ from those of another case of the study.
  const settings = (study, i) => study.factors.map((factor) => [factor.key, factor.values[factor.of[i]]]);
  function caseDifferences(study, i, j) {
    const other = new Map(settings(study, j));
    return settings(study, i).filter(([key, value]) => other.get(key) !== value).map(([key, value]) => [key, other.get(key), value]);
  }

  function section(study) {
    const varied = study.factors.map((factor) => h("tr", {}, h("th", { scope: "row" }, factor.key), h("td", {}, factor.values.slice(0, 30).join(", ") + (factor.values.length > 30 ? `, and ${factor.values.length - 30} more` : ""))));
    return h("section", { id: "scenario" }, h("h2", {}, "Scenario"),
      study.description ? h("p", {}, study.description) : null,
      varied.length ? [h("h3", {}, "What varies"), h("div", { class: "scroll" }, h("table", { class: "plain" }, h("tbody", {}, varied)))] : null,
      h("details", {}, h("summary", {}, "The scenario as it was resolved"), h("pre", { tabindex: 0 }, study.scenarioText)),
      h("p", {}, "The command that gives the same data: ", h("code", {}, study.command)));
  }

  return { differences, differencesTable, caseDifferences, settings, section };
})();
