// The page's own script: draws the charts when they come into view, in the theme that the reader's system asks for.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("plait-data").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.querySelector(".theme");
  let chosen = null;

  const theme = () => chosen ?? (dark.matches ? "dark" : "light");

  // Specifications name colours as tokens ("@ink"); the theme says what they are.
  function paint(node, colours) {
    if (typeof node === "string") {
      return node[0] === "@" && node.slice(1) in colours ? colours[node.slice(1)] : node;
    }
    if (Array.isArray(node)) return node.map((child) => paint(child, colours));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, paint(child, colours)]));
    }
    return node;
  }

  const pen = document.createElement("canvas").getContext("2d");
  const SYMBOL = 50; // Pixels of an entry beside its text.
  const AXIS = 72; // Pixels of a chart left of its key.

  // A key has no more columns than the chart holds: more would leave it.
  function withNarrowKeys(node, width) {
    if (Array.isArray(node)) return node.map((child) => withNarrowKeys(child, width));
    if (!node || typeof node !== "object") return node;
    const made = Object.fromEntries(
      Object.entries(node).map(([key, child]) => [key, key === "data" ? child : withNarrowKeys(child, width)]),
    );
    const domain = made.scale?.domain;
    if (made.legend && Array.isArray(domain) && !("gradientLength" in made.legend)) {
      const named = /\((\{.*\})\)\[datum\.label\]/.exec(made.legend.labelExpr ?? "");
      const texts = named ? Object.values(JSON.parse(named[1])) : domain.map(String);
      const widest = Math.max(0, ...texts.map((text) => pen.measureText(text).width)) + SYMBOL;
      const most = Math.min(made.legend.columns ?? domain.length, domain.length, Math.floor(width / widest));
      made.legend = { ...made.legend, columns: Math.max(1, most), labelLimit: Math.max(40, width - SYMBOL) };
    }
    return made;
  }

  async function draw(chart) {
    const colours = data.themes[theme()];
    chart.room = chart.clientWidth;
    pen.font = "12px system-ui, sans-serif";
    const spec = withNarrowKeys(paint(data.figures[chart.dataset.figure], colours), chart.room - AXIS);
    spec.config = paint(data.config, colours);
    chart.drawn?.finalize();
    chart.drawn = await window.vegaEmbed(chart, spec, {
      mode: "vega-lite",
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: chart.dataset.figure,
      tooltip: { theme: "custom" },
    });
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          seen.unobserve(entry.target);
          draw(entry.target);
        }
      }
    },
    { rootMargin: "400px" },
  );

  function applyTheme() {
    const name = theme();
    root.dataset.theme = name;
    for (const [key, colour] of Object.entries(data.themes[name])) root.style.setProperty(`--${key}`, colour);
    button.textContent = name === "dark" ? "Light" : "Dark";
    for (const chart of document.querySelectorAll(".chart")) if (chart.drawn) draw(chart);
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    applyTheme();
  });
  dark.addEventListener("change", applyTheme);
  applyTheme();

  for (const pick of document.querySelectorAll(".picks button")) {
    pick.addEventListener("click", () => {
      const panel = document.getElementById(pick.dataset.panel);
      panel.hidden = !panel.hidden;
      pick.setAttribute("aria-pressed", String(!panel.hidden));
    });
  }

  for (const copy of document.querySelectorAll(".command button")) {
    if (!navigator.clipboard) continue;
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copy.parentElement.querySelector("code").textContent);
      copy.textContent = "Copied";
    });
  }

  let settled = 0;
  window.addEventListener("resize", () => {
    clearTimeout(settled);
    settled = setTimeout(() => {
      for (const chart of document.querySelectorAll(".chart")) {
        if (chart.drawn && Math.abs(chart.clientWidth - chart.room) > 40) draw(chart);
      }
    }, 300);
  });

  // A printed page has no "into view": everything is drawn before.
  window.addEventListener("beforeprint", () => {
    for (const chart of document.querySelectorAll(".chart")) if (!chart.drawn) draw(chart);
  });
  for (const chart of document.querySelectorAll(".chart")) seen.observe(chart);
})();
