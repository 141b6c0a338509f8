// Shows the page that the address names, and changes the theme.
"use strict";
(() => {
  const { h } = plait;
  const main = document.querySelector("main");
  const crumbs = document.querySelector(".crumbs");
  const button = document.querySelector(".theme");
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let leave = null, turn = 0, chosen = null;

  plait.live = document.querySelector("meta[http-equiv]") === null;

  function theme() {
    root.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
    button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    plait.charts.redraw();
  }

  async function show({ keep = false } = {}) {
    const own = (turn += 1);
    const address = decodeURI(location.hash.replace(/^#\/?/, ""));
    leave?.();
    leave = null;
    let shown = null;
    try {
      const [pattern, make] = plait.pages.find(([candidate]) => candidate.test(address)) ?? [];
      if (!make) throw new Error("there is no such page");
      shown = await make(...address.match(pattern).slice(1));
    } catch (error) {
      shown = { crumbs: [["Studies", "#/"]], content: [h("h1", {}, "This page cannot be shown"), h("p", { class: "bad" }, error.message)] };
    }
    if (own !== turn) { shown.leave?.(); return; }
    leave = shown.leave ?? null;
    const content = shown.content.flat(9).filter(Boolean);
    if (keep) plait.renew(main, ...content);
    else main.replaceChildren(...content);
    const last = shown.crumbs.length - 1;
    crumbs.replaceChildren(h("ol", {}, shown.crumbs.map(([text, target], at) => h("li", {}, h("a", { href: target, "aria-current": at === last ? "page" : null }, text)))));
    document.title = `${shown.crumbs[last][0]} \u2013 plait`;
    root.dataset.shown = address || "studies";
    if (!keep) { window.scrollTo(0, 0); main.focus({ preventScroll: true }); }
  }

  plait.again = () => show({ keep: true });
  plait.themes = plait.peek("theme");
  button.addEventListener("click", () => { chosen = root.dataset.theme === "dark" ? "light" : "dark"; theme(); });
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  dark.addEventListener("change", theme);
  window.addEventListener("hashchange", () => show());
  theme();
  show();
})();
