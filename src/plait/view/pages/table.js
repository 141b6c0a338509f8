// A table of any length: only the rows in view exist. Columns sort, a text filters, arrow keys move, Enter opens.
"use strict";
plait.table = (() => {
  const { h, announce } = plait;
  const ROW = 36;
  const BEYOND = 8;
  const SAMPLED = 300;

  // columns: {title, text(i), value?(i), number?, node?(i), hint?}; link(i): the address that a row opens.
  function table({ name, columns, count, link, filterText, sort = null, wanted = null, onMark = null, marked = null }) {
    const state = { sort, words: [], wanted, order: [], first: -1, last: -1, count };
    const body = h("tbody");
    const head = h("tr");
    const grid = h("table", { class: "grid", "aria-label": name },
      h("colgroup"), h("thead", {}, head), body);
    const box = h("div", { class: "scroll", tabindex: -1 }, grid);
    const counted = h("span", { class: "note", "aria-live": "polite" });
    const filter = h("input", {
      type: "search", placeholder: "Filter", "aria-label": `Filter ${name}`, maxlength: 200, spellcheck: "false",
      oninput: () => { state.words = filter.value.toLowerCase().split(/\s+/).filter(Boolean); arrange(); },
    });
    const top = h("div", { class: "tools" }, filter, counted);

    const shape = (column) => (column.stick ? "stick" : column.number ? "number" : null);
    const value = (column, i) => (column.value ? column.value(i) : column.text(i));

    function compare(column, sign) {
      return (a, b) => {
        const x = value(column, a), y = value(column, b);
        if (x === y) return a - b;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true })) * sign || a - b;
      };
    }

    function arrange() {
      const order = [];
      for (let i = 0; i < state.count; i += 1) {
        if (state.wanted && !state.wanted(i)) continue;
        if (state.words.length) {
          const text = filterText(i).toLowerCase();
          if (!state.words.every((word) => text.includes(word))) continue;
        }
        order.push(i);
      }
      if (state.sort) order.sort(compare(columns[state.sort[0]], state.sort[1]));
      state.order = order;
      counted.textContent = order.length === state.count ? `${state.count}` : `${order.length} of ${state.count}`;
      grid.setAttribute("aria-rowcount", String(order.length + 1));
      [...head.children].forEach((cell, at) => {
        const own = state.sort && state.sort[0] === at;
        cell.setAttribute("aria-sort", own ? (state.sort[1] > 0 ? "ascending" : "descending") : "none");
      });
      state.first = -1;
      draw();
    }

    function widths() {
      const group = grid.querySelector("colgroup");
      const step = Math.max(1, Math.floor(state.count / SAMPLED));
      let total = 0;
      group.replaceChildren(...columns.map((column) => {
        // A title may have several lines.
        let longest = Math.max(...column.title.split(" ").map((word) => word.length)) + 3;
        for (let i = 0; i < state.count; i += step) longest = Math.max(longest, column.text(i).length + 2.6);
        const width = Math.min(Math.max(longest, 6), 46);
        total += width;
        return h("col", { vars: { width: `${width * 0.56}rem` } });
      }));
      grid.style.setProperty("--least", `${total * 0.56}rem`);
    }

    function draw() {
      const fit = Math.ceil((box.clientHeight || 500) / ROW) + 2 * BEYOND;
      // A filter can leave fewer rows than the box has scrolled past.
      const lastStart = Math.max(0, state.order.length - fit);
      const first = Math.min(Math.max(0, Math.floor(box.scrollTop / ROW) - BEYOND), lastStart);
      const last = Math.min(state.order.length, first + fit);
      if (first === state.first && last === state.last) return;
      const focused = document.activeElement?.closest?.("tr")?.dataset.at;
      const refocus = focused !== undefined && body.contains(document.activeElement);
      state.first = first;
      state.last = last;
      const rows = [spacer(first)];
      for (let at = first; at < last; at += 1) rows.push(row(at));
      rows.push(spacer(state.order.length - last));
      if (state.order.length === 0) rows.push(h("tr", {}, h("td", { colspan: columns.length }, "Nothing matches.")));
      body.replaceChildren(...rows);
      if (refocus) body.querySelector(`tr[data-at="${Number(focused)}"] a, tr[data-at="${Number(focused)}"] button`)?.focus({ preventScroll: true });
    }

    const spacer = (rows) => h("tr", { class: "spacer", "aria-hidden": "true", vars: { height: `${rows * ROW}px` } });

    function row(at) {
      const i = state.order[at];
      return h("tr", { "data-at": at, "aria-rowindex": at + 2 }, columns.map((column, number) => {
        const content = column.node ? column.node(i) : column.text(i);
        const address = number === 0 && link ? link(i) : null;
        return h("td", { class: shape(column), title: column.node ? null : column.text(i) },
          address ? h("a", { href: address }, content) : content);
      }));
    }

    function go(at) {
      const target = Math.min(Math.max(at, 0), state.order.length - 1);
      if (target < 0) return;
      const top = target * ROW, visible = box.clientHeight - 2 * ROW;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top > box.scrollTop + visible) box.scrollTop = top - visible;
      draw();
      body.querySelector(`tr[data-at="${target}"] a, tr[data-at="${target}"] button`)?.focus({ preventScroll: true });
    }

    box.addEventListener("scroll", () => draw(), { passive: true });
    new ResizeObserver(() => { if (box.isConnected) draw(); }).observe(box);
    box.addEventListener("keydown", (event) => {
      const here = event.target.closest("tr")?.dataset.at;
      if (here === undefined) return;
      const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
      const to = { ArrowDown: +here + 1, ArrowUp: +here - 1, PageDown: +here + page, PageUp: +here - page, Home: 0, End: Infinity }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to === Infinity ? state.order.length - 1 : to);
    });
    // A click anywhere in a row opens it, as its link does.
    body.addEventListener("click", (event) => {
      if (event.target.closest("a, button, input") || String(window.getSelection())) return;
      event.target.closest("tr")?.querySelector("td:first-child a")?.click();
    });

    head.replaceChildren(...columns.map((column, number) => h("th", { scope: "col", class: shape(column) },
      // A column of buttons or bars has no name, and no order of its own.
      column.title.trim() === "" ? null : h("button", {
        type: "button", title: column.hint ?? `Sort by ${column.title}`,
        onclick: () => {
          const own = state.sort && state.sort[0] === number;
          state.sort = [number, own ? -state.sort[1] : column.number ? -1 : 1];
          arrange();
          announce(`Sorted by ${column.title}`);
        },
      }, column.title))));

    function csv() {
      const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const shown = columns.filter((column) => column.title);
      const lines = [shown.map((column) => cell(column.csv ?? column.title)).join(",")];
      for (const i of state.order) lines.push(shown.map((column) => cell(String(value(column, i) ?? ""))).join(","));
      return `${lines.join("\n")}\n`;
    }

    widths();
    arrange();
    return {
      element: h("div", { class: "table" }, top, box),
      tools: top,
      csv,
      // New data for the same columns.
      update(newCount) { state.count = newCount; arrange(); },
      restrict(newWanted) { state.wanted = newWanted; arrange(); },
    };
  }
  return table;
})();
