// What all scripts share: data files, elements, and the list of pages. Texts become text nodes, never HTML.
"use strict";
window.plait = (() => {
  const kept = new Map();
  const waiting = new Map();
  const pages = [];

  // A data file calls this with its content.
  function put(key, value) {
    kept.set(key, value);
    waiting.get(key)?.(value);
    waiting.delete(key);
  }

  // Pages that were opened as files cannot fetch, but they can load scripts.
  function script(address) {
    return new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = address;
      element.onload = () => { element.remove(); resolve(); };
      element.onerror = () => { element.remove(); reject(new Error(`${address} cannot be loaded`)); };
      document.head.append(element);
    });
  }

  const loading = new Map();
  // The value of a data file; `again` loads it even if it was loaded before.
  function load(key, { again = false } = {}) {
    if (!again && kept.has(key)) return Promise.resolve(kept.get(key));
    if (!loading.has(key)) {
      kept.delete(key);
      const loaded = script(`data/${key}.js`).then(
        () => {
          if (!kept.has(key)) throw new Error(`${key} has no content`);
          return kept.get(key);
        },
        () => { throw new Error("the data cannot be loaded; if `plait view` has ended, start it again"); },
      ).finally(() => loading.delete(key));
      loading.set(key, loaded);
    }
    return loading.get(key);
  }

  // An element with properties (`class`, `on..`, `data-..`, `aria-..`) and children: elements, texts, or lists of them.
  function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "vars") for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set);
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  const SVG = "http://www.w3.org/2000/svg";
  const DRAWN = new Set(["svg", "g", "path", "rect", "text", "tspan", "title", "desc", "circle", "ellipse", "line",
    "polyline", "polygon", "defs", "marker", "clipPath"]);
  // A drawing of the network, from its text. Only shapes and words pass, although plait wrote it.
  function drawing(text) {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (parsed.namespaceURI !== SVG || parsed.localName !== "svg") return h("p", { class: "note" }, "No drawing.");
    for (const element of [parsed, ...parsed.querySelectorAll("*")]) {
      if (element.namespaceURI !== SVG || !DRAWN.has(element.localName)) { element.remove(); continue; }
      for (const { name } of [...element.attributes]) {
        if (/^on|href|^style$/i.test(name)) element.removeAttribute(name);
      }
    }
    return document.importNode(parsed, true);
  }

  // The words by which a reader knows an element again.
  const named = (element) => `${element.tagName} ${element.ariaLabel ?? ""} ${(element.closest("label") ?? element).textContent}`;

  // Replaces what a place shows by its newer form. The focus stays where a reader has it, and what is open stays open.
  function renew(place, ...content) {
    const focused = place.contains(document.activeElement) ? document.activeElement : null;
    const open = new Set([...place.querySelectorAll("details[open] > summary")].map(named));
    place.replaceChildren(...content.filter((child) => child !== null && child !== undefined));
    for (const summary of place.querySelectorAll("details > summary")) summary.parentElement.open ||= open.has(named(summary));
    if (!focused) return;
    const again = [...place.querySelectorAll(focused.tagName)].find((element) => named(element) === named(focused));
    again?.focus({ preventScroll: true });
    if (again?.matches("input")) again.setSelectionRange(focused.selectionStart, focused.selectionEnd);
  }

  // Offers text as a file.
  function save(name, text, type = "text/csv") {
    const address = URL.createObjectURL(new Blob([text], { type }));
    h("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  const announce = (text) => { document.querySelector(".announce").textContent = text; };
  const page = (pattern, make) => pages.push([pattern, make]);

  const peek = (key) => kept.get(key);

  return { put, peek, load, script, h, renew, drawing, save, announce, page, pages };
})();
