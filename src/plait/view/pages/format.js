// Numbers as a person reads them; the same texts as in the terminal and in the report.
"use strict";
plait.format = (() => {
  const MISSING = "\u2013";
  const MINUS = "\u2212";

  function significant(value, digits = 3) {
    if (value === 0) return "0";
    let decimals = Math.max(digits - 1 - Math.floor(Math.log10(Math.abs(value))), 0);
    const rounded = Number(value.toFixed(Math.min(decimals, 20)));
    if (rounded && Math.floor(Math.log10(Math.abs(rounded))) > Math.floor(Math.log10(Math.abs(value)))) {
      decimals = Math.max(decimals - 1, 0);
    }
    return value.toFixed(Math.min(decimals, 20)).replace("-", MINUS);
  }

  const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  function scaled(value, unit) {
    const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(value) >= f * 0.9995) ?? [1, ""];
    return [factor, `${prefix}${unit}`];
  }

  // The divisor and unit in which a value of this kind reads best.
  function unit(kind, value) {
    if (kind === "rate") return scaled(value, "bit/s");
    if (kind === "size") return scaled(value, "B");
    if (kind === "seconds") return Math.abs(value) < 0.9995 ? [1e-3, "ms"] : [1, "s"];
    if (kind === "micros") return Math.abs(value) < 999500 ? [1e3, "ms"] : [1e6, "s"];
    if (kind === "percent") return [0.01, "%"];
    return [1, ""];
  }

  function number(kind, value) {
    if (kind !== "count") return significant(value);
    return Number.isInteger(value) || Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1);
  }

  function show(kind, value) {
    if (value === null || value === undefined) return MISSING;
    const [divisor, name] = unit(kind, value);
    return `${number(kind, value / divisor)} ${name}`.trim();
  }

  // A mean and half its interval in one unit.
  function interval(kind, value, low, high) {
    if (!value || low === null || low === undefined) return show(kind, value);
    const [divisor, name] = unit(kind, value);
    return `${number(kind, value / divisor)} ${half(kind, value, low, high)} ${name}`.trim();
  }

  // Half an interval in the unit of its mean, which is not repeated; the ends of one that leans.
  function half(kind, value, low, high) {
    const [divisor] = unit(kind, value);
    // A narrow window has no room for both ends; the page of the case has them.
    const alike = number(kind, low / divisor) === number(kind, high / divisor);
    if (!alike && Math.abs(low + high - 2 * value) > 0.02 * (high - low)) return window.innerWidth < 576 ? "" : `(${number(kind, low / divisor)} to ${number(kind, high / divisor)})`;
    const decimals = (number(kind, value / divisor).split(".")[1] ?? "").length;
    const bound = (high - low) / 2 / divisor;
    const least = 10 ** -decimals;
    return `\u00b1 ${bound >= least / 2 ? bound.toFixed(decimals) : `<${least.toFixed(decimals)}`}`;
  }

  const change = (ratio) => `${ratio >= 1 ? "+" : MINUS}${Math.abs((ratio - 1) * 100).toFixed(1)} %`;
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  // Keeps a number with its unit, an equation, and the arrow of a direction on one line.
  const together = (text) => text.replaceAll("->", "-\u2060>").replace(/(\d) (?=(?:%|[GMk]?bit\/s|[GMk]?B|[mu\u00b5n]?s)(?![\w/]))/g, "$1\u00a0").replace(/ ([=<>]) (?=[\d\u2212])/g, "\u00a0$1\u00a0").replace(/(\([\d.]+,) (?=[\d.]+\))/g, "$1\u00a0");

  // The name of a field in words.
  const words = (name) => name.replaceAll("_", " ");

  return { MISSING, words, together, significant, show, interval, half, change, plural };
})();
