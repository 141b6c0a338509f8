// A table of any length: only the rows in view exist. Columns sort, a text filters, arrow keys move, Enter opens.
// Columns that may be absent are hidden where the window has no room for them, until a button shows all.
// What a reader typed and chose outlives the table: the next one `of` the same begins with it.
"use strict";
plait.table = (() => {
  const { h, announce } = plait;
  const ROW = 36;
  const BEYOND = 8;
  const SAMPLED = 300;
  const NARROW_REM = 36;
  const TALL_ROW = 56;
  const LEAST_REM = 7;
  const chosenOf = new Map();
  const identity = (column) => column.csv ?? column.title;
  const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

  // columns: {title, text(i), value?(i), number?, node?(i), hint?, absent?, narrow?, soft?}; link(i): the address that
  // a row opens. `absent`: a column with a greater number is hidden earlier, one without a number never. `narrow`: false for
  // columns that a narrow window lacks, true for those that only a narrow one has. `soft`: its text may be cut.
  function table({ of, name, columns, count, link, filterText }) {
    const state = { order: [], first: -1, last: -1, count, row: ROW, shown: [], room: 0 };
    const key = `${name} of ${of}`;
    if (!chosenOf.has(key)) chosenOf.set(key, { text: "", sort: null, all: false, scrolled: 0 });
    const chosen = chosenOf.get(key);
    const body = h("tbody");
    const head = h("tr");
    const grid = h("table", { class: "grid", "aria-label": name },
      h("colgroup"), h("thead", {}, head), body);
    const box = h("div", { class: "scroll", tabindex: -1 }, grid);
    const counted = h("span", { class: "note", "aria-live": "polite" });
    const filter = h("input", {
      type: "search", placeholder: "Filter", "aria-label": `Filter ${name}`, maxlength: 200, spellcheck: "false",
      oninput: () => { chosen.text = filter.value; arrange(); },
    });
    filter.value = chosen.text;
    const more = h("button", { type: "button", class: "link", onclick: () => { chosen.all = !chosen.all; state.room = 0; fit(); } });
    const top = h("div", { class: "tools" }, filter, counted, more);

    const shape = (column) => (column.stick ? "stick" : column.number ? "number" : column.narrow ? "lines" : null);
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
      const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
      for (let i = 0; i < state.count; i += 1) {
        if (words.length) {
          const text = filterText(i).toLowerCase();
          if (!words.every((word) => text.includes(word))) continue;
        }
        order.push(i);
      }
      const sorting = chosen.sort && columns.find((column) => identity(column) === chosen.sort[0]);
      if (sorting) order.sort(compare(sorting, chosen.sort[1]));
      state.order = order;
      counted.textContent = order.length === state.count ? `${state.count}` : `${order.length} of ${state.count}`;
      grid.setAttribute("aria-rowcount", String(order.length + 1));
      sorted();
      state.first = -1;
      draw();
    }

    function sorted() {
      [...head.children].forEach((cell, at) => {
        const own = chosen.sort && chosen.sort[0] === identity(state.shown[at]);
        cell.setAttribute("aria-sort", own ? (chosen.sort[1] > 0 ? "ascending" : "descending") : "none");
      });
    }

    // The width in rem that a column needs.
    function width(column) {
      const step = Math.max(1, Math.floor(state.count / SAMPLED));
      // A title may have several lines, and so may the text of a narrow window's column.
      let longest = Math.max(...column.title.split(" ").map((word) => word.length)) + 3;
      const length = (text) => (column.narrow ? Math.max(text.length / 2, ...text.split(" ").map((word) => word.length)) : text.length);
      for (let i = 0; i < state.count; i += step) longest = Math.max(longest, length(column.text(i)) + 2.6);
      return Math.min(Math.max(longest, 6), 46) * 0.56;
    }

    // Choose the columns that fit into the box, and show them.
    function fit() {
      const room = (box.clientWidth || box.parentElement?.clientWidth || 1200) / rem();
      if (room === state.room) return;
      state.room = room;
      const narrow = room < NARROW_REM && columns.some((column) => column.narrow);
      const needed = new Map(columns.map((column) => [column, width(column)]));
      const total = (some) => some.reduce((sum, column) => sum + needed.get(column), 0);
      const possible = columns.filter((column) => column.narrow === undefined || (column.narrow === narrow && !chosen.all) || (chosen.all && !column.narrow));
      const droppable = possible.filter((column) => column.absent).sort((a, b) => a.absent - b.absent);
      let kept = possible;
      while (!chosen.all && droppable.length && total(kept) > room) {
        const dropped = droppable.pop();
        kept = kept.filter((column) => column !== dropped);
      }
      const lines = kept.find((column) => column.narrow);
      // Its text breaks into lines, or is cut, where the other columns leave it less room.
      const soft = lines ?? kept.find((column) => column.soft);
      if (soft && !chosen.all) needed.set(soft, Math.max(LEAST_REM, Math.min(needed.get(soft), room - total(kept) + needed.get(soft))));
      const hidden = columns.filter((column) => !column.narrow && column.title.trim() && !kept.includes(column)).length;
      more.hidden = !(chosen.all ? total(possible) > room : hidden);
      more.textContent = chosen.all ? "Only columns that fit" : `All columns (${hidden} more)`;
      state.row = lines ? TALL_ROW : ROW;
      grid.style.setProperty("--row", `${state.row}px`);
      grid.style.setProperty("--least", `${total(kept)}rem`);
      grid.querySelector("colgroup").replaceChildren(...kept.map((column) => h("col", { vars: { width: `${needed.get(column)}rem` } })));
      state.shown = kept;
      title();
      state.first = -1;
      draw();
    }

    function draw() {
      const rowsInView = Math.ceil((box.clientHeight || 500) / state.row) + 2 * BEYOND;
      // A filter can leave fewer rows than the box has scrolled past.
      const lastStart = Math.max(0, state.order.length - rowsInView);
      const first = Math.min(Math.max(0, Math.floor(chosen.scrolled / state.row) - BEYOND), lastStart);
      const last = Math.min(state.order.length, first + rowsInView);
      if (first === state.first && last === state.last) return;
      const focused = document.activeElement?.closest?.("tr")?.dataset.at;
      const refocus = focused !== undefined && body.contains(document.activeElement);
      state.first = first;
      state.last = last;
      const rows = [spacer(first)];
      for (let at = first; at < last; at += 1) rows.push(row(at));
      rows.push(spacer(state.order.length - last));
      if (state.order.length === 0) rows.push(h("tr", {}, h("td", { colspan: state.shown.length }, "Nothing matches.")));
      body.replaceChildren(...rows);
      if (refocus) body.querySelector(`tr[data-at="${Number(focused)}"] a, tr[data-at="${Number(focused)}"] button`)?.focus({ preventScroll: true });
    }

    const spacer = (rows) => h("tr", { class: "spacer", "aria-hidden": "true", vars: { height: `${rows * state.row}px` } });

    function row(at) {
      const i = state.order[at];
      return h("tr", { "data-at": at, "aria-rowindex": at + 2 }, state.shown.map((column, number) => {
        const content = column.node ? column.node(i) : column.text(i);
        const address = number === 0 && link ? link(i) : null;
        return h("td", { class: shape(column), title: column.node ? null : column.text(i) },
          address ? h("a", { href: address }, content) : content);
      }));
    }

    function go(at) {
      const target = Math.min(Math.max(at, 0), state.order.length - 1);
      if (target < 0) return;
      const top = target * state.row, visible = box.clientHeight - 2 * state.row;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top > box.scrollTop + visible) box.scrollTop = top - visible;
      chosen.scrolled = box.scrollTop;
      draw();
      body.querySelector(`tr[data-at="${target}"] a, tr[data-at="${target}"] button`)?.focus({ preventScroll: true });
    }

    box.addEventListener("scroll", () => { chosen.scrolled = box.scrollTop; draw(); }, { passive: true });
    new ResizeObserver(() => {
      if (!box.isConnected) return;
      box.scrollTop = chosen.scrolled; // a new box begins at its top
      fit();
      draw();
    }).observe(box);
    box.addEventListener("keydown", (event) => {
      const here = event.target.closest("tr")?.dataset.at;
      if (here === undefined) return;
      const page = Math.max(1, Math.floor(box.clientHeight / state.row) - 2);
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

    function title() {
      head.replaceChildren(...state.shown.map((column) => h("th", { scope: "col", class: shape(column) },
        // A column of buttons or bars has no name, and no order of its own.
        column.title.trim() === "" ? null : h("button", {
          type: "button", title: column.hint ?? `Sort by ${column.title}`,
          onclick: () => {
            const own = chosen.sort && chosen.sort[0] === identity(column);
            chosen.sort = [identity(column), own ? -chosen.sort[1] : column.number ? -1 : 1];
            arrange();
            announce(`Sorted by ${column.title}`);
          },
        }, column.title))));
      sorted();
    }

    function csv() {
      const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const shown = columns.filter((column) => column.title && !column.narrow);
      const lines = [shown.map((column) => cell(column.csv ?? column.title)).join(",")];
      for (const i of state.order) lines.push(shown.map((column) => cell(String(value(column, i) ?? ""))).join(","));
      return `${lines.join("\n")}\n`;
    }

    fit();
    arrange();
    return {
      element: h("div", { class: "table" }, top, box),
      csv,
      // New data for the same columns.
      update(newCount) { state.count = newCount; arrange(); },
    };
  }
  return table;
})();
