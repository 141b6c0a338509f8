// A study that runs: its trials appear as they end, and the goodput of those that run grows.
"use strict";
plait.liveSection = (study, changed) => {
  const { h, load, format, charts } = plait;
  const EVERY_MS = 1000;
  const place = h("section", { id: "live", hidden: true });
  const state = { timer: null, gone: false, version: -1, idle: 0 };

  function show(news) {
    const share = news.total ? news.done / news.total : 0;
    const running = news.trials.map((trial) => {
      const made = trial.goodput.length ? charts.growing(trial.goodput) : null;
      return h("figure", { class: "over-time" }, h("figcaption", {}, `${study.labels[trial.case]}, trial ${String(trial.number).padStart(3, "0")}`,
        trial.seconds === null ? "" : `, at ${format.significant(trial.seconds)} s of virtual time`, made ? `. ${made.title}` : ""), made?.place);
    });
    place.hidden = !news.running && !news.pending;
    place.replaceChildren(h("h2", {}, news.running ? "Running" : "Reading trials"),
      h("p", {}, `${news.done} of ${news.total} trials${news.failed ? `, ${news.failed} failed` : ""}`),
      h("progress", { max: 1, value: share, "aria-label": "Trials that ended" }), h("div", { class: "figures" }, running));
  }

  async function ask() {
    try {
      const news = await load(`${study.id}/live`, { again: true });
      if (state.gone) return;
      if (news.error) throw new Error(news.error);
      if (news.version !== state.version) {
        state.version = news.version;
        study.figures = news.figures;
        if (Object.keys(news.figures.metrics).some((name) => !study.metrics.some((view) => view.name === name))) {
          plait.again(); // the first trial ended: now there are metrics to show
          return;
        }
        changed();
      }
      show(news);
      if (!news.running && !news.pending) {
        if (study.running) plait.again();
        return;
      }
      state.timer = setTimeout(ask, EVERY_MS);
    } catch (error) {
      place.hidden = false;
      place.replaceChildren(h("p", { class: "bad" }, `No news: ${error.message}`));
    }
  }

  if (plait.live && (study.running || !study.summarised)) ask();
  return { element: place, stop: () => { state.gone = true; clearTimeout(state.timer); } };
};
