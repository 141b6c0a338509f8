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

  async function draw(chart) {
    const colours = data.themes[theme()];
    const spec = paint(data.figures[chart.dataset.figure], colours);
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

  // A printed page has no "into view": everything is drawn before.
  window.addEventListener("beforeprint", () => {
    for (const chart of document.querySelectorAll(".chart")) if (!chart.drawn) draw(chart);
  });
  for (const chart of document.querySelectorAll(".chart")) seen.observe(chart);
})();
