"use strict";
/* Distributions of scores with the thresholds of rules: move one, and see what would be dropped and kept. */
(() => {
  const { el, count, percent, measure } = page;
  const { report } = page;
  let logarithmic = false,
    others = false;
  const tried = new Set(); // scores without a threshold, for which the reader has asked for one

  page.section("scores", (run, label) => {
    if (!run.scores.length) return null;
    const used = run.scores.filter((score) => score.marks.length),
      rest = run.scores.filter((score) => !score.marks.length);
    const grid = el(
      "div",
      { class: "cards" },
      (used.length ? used : rest).map((score) => card(run, score, label)),
    );
    const box = el("input", {
      type: "checkbox",
      "data-key": "scores/log",
      change: () => {
        logarithmic = box.checked;
        for (const chart of grid.querySelectorAll(".chart")) chart.scale(logarithmic);
      },
    });
    box.checked = logarithmic;
    const more =
      used.length && rest.length
        ? el(
            "button",
            {
              type: "button",
              "data-key": "scores/more",
              click: () => {
                others = true;
                more.remove();
                page.add(
                  grid,
                  rest.map((score) => card(run, score, label)),
                );
              },
            },
            `Show ${page.some(rest.length, "other score")}`,
          )
        : null;
    if (more && others) {
      more.remove();
      page.add(
        grid,
        rest.map((score) => card(run, score, label)),
      );
    }
    return [
      el("div", { class: "controls" }, el("label", { class: "check" }, box, el("span", {}, "Logarithmic counts"))),
      grid,
      others ? null : more,
    ];
  });

  /** Go to a score; its card is made by then. */
  page.showScore = (field) => {
    const found = document.getElementById(`score-${field}`);
    if (found) {
      found.scrollIntoView({ block: "start" });
      found.focus({ preventScroll: true });
    } else location.hash = "#scores";
  };

  /** Return the thresholds that hold for a label: its own, or those for all others. */
  function applicable(score, label) {
    const sized = score.marks.filter((mark) => /^[<>]=?$/.test(mark.sign)),
      key = (mark) => `${mark.stream}/${mark.rule}/${mark.sign}`;
    const own = sized.filter((mark) => label !== null && mark.label === label),
      named = new Set(own.map(key));
    return [...own, ...sized.filter((mark) => mark.label === "" && !named.has(key(mark)))];
  }

  function card(run, score, label) {
    const bins = page.bins(score.edges),
      read = report.counts(score.counts, label),
      stay = report.counts(score.after || {}, label),
      on = report.counts(score.on_edges || {}, label);
    const marks = tried.has(score.field) ? [trial(score, bins)] : applicable(score, label),
      nulls = label === null ? report.total(Object.values(score.nulls)) : score.nulls[label] || 0;
    const all = report.total(read);
    const dials = marks.map((mark) => dial(score, bins, mark, label));
    const series = [{ name: report.total(stay) ? "read" : "documents", counts: read, colour: "--bin-read" }];
    if (report.total(stay)) series.push({ name: "stay", counts: stay, colour: "--bin-stay" });
    const chart = page.histogram({
      label: `${report.of(label)} by ${score.field}`,
      edges: score.edges,
      series,
      logarithmic,
      thresholds: dials.map((each) => each.threshold),
    });
    dials.forEach((each, place) => each.follow((value) => chart.move(place, value)));
    const own = score.marks.filter((mark) => mark.label !== "");
    return el(
      "article",
      { class: "card", id: `score-${score.field}`, tabindex: "-1", "aria-label": `Score ${score.field}` },
      el("h3", {}, el("code", {}, score.field), score.set ? el("span", { class: "muted" }, ` ${score.set}`) : null),
      score.description ? el("p", { class: "muted small" }, score.description) : null,
      all ? chart : el("p", { class: "muted" }, `None of ${report.of(label)} has a value.`),
      all ? dials.map((each) => each.element) : null,
      all && !marks.length
        ? el(
            "button",
            {
              type: "button",
              "data-key": `try/${score.field}`,
              click: (event) => {
                tried.add(score.field);
                event.target.closest("article").replaceWith(card(run, score, label));
                page.showScore(score.field);
              },
            },
            "Try a threshold",
          )
        : null,
      el(
        "p",
        { class: "muted small" },
        page.some(all, "value"),
        nulls ? `, ${page.some(nulls, "document")} without one` : "",
        all ? `; the middle one is about ${measure(bins.quantile(read, 0.5, on))}` : "",
        score.exact ? "." : "; bins of a sketch, whose values are right to a part in a hundred.",
      ),
      label === null && own.length
        ? el(
            "p",
            { class: "note" },
            `${own.length === 1 ? "One language has" : `${count(new Set(own.map((mark) => mark.label)).size)} languages have`} a threshold of their own: choose a language to see it.`,
          )
        : null,
      score.marks
        .filter((mark) => !/^[<>]=?$/.test(mark.sign))
        .slice(0, 5)
        .map((mark) =>
          el("p", { class: "muted small" }, el("bdi", {}, mark.rule), " compares: ", el("code", {}, mark.text)),
        ),
      all
        ? page.binTable(
            `${score.field} of ${report.of(label)}`,
            score.edges,
            series.map((each) => [each.name[0].toUpperCase() + each.name.slice(1), each.counts]),
          )
        : null,
    );
  }

  /** A threshold that no rule has: one that would drop the lower half of all documents. */
  function trial(score, bins) {
    const value = bins.quantile(report.counts(score.counts, null), 0.5, report.counts(score.on_edges || {}, null));
    return {
      rule: "a trial",
      stream: "",
      label: "",
      value,
      sign: "<",
      drops: "below",
      text: `${score.field} < ${measure(value)}`,
      holds: null,
    };
  }

  /** The controls of one threshold, and what it would do. */
  function dial(score, bins, mark, label) {
    const lower = mark.drops !== "above",
      orEqual = mark.sign === "<=" || mark.sign === ">"; // what is equal is on the lower side
    /* Languages that have a threshold of their own keep it while this one moves. */
    const others = score.marks.filter(
      (other) => other !== mark && other.rule === mark.rule && other.stream === mark.stream && other.sign === mark.sign,
    );
    const owner = new Map(
      Object.keys(score.counts).map((each) => [
        each,
        [mark, ...others].find((one) => one.label === each) || [mark, ...others].find((one) => one.label === ""),
      ]),
    );
    const rows = (label === null ? [null] : [label, null]).map((each) => {
      const labels = each === null ? [...owner.keys()] : [each],
        mine = labels.filter((one) => owner.get(one) === mark),
        fixed = labels.filter((one) => owner.get(one) !== mark);
      const add = (by) =>
        report.counts(Object.fromEntries(mine.filter((one) => by[one]).map((one) => [one, by[one]])), null);
      return {
        label: each,
        counts: add(score.counts),
        after: add(score.after || {}),
        on: add(score.on_edges || {}),
        afterOn: add(score.after_on_edges || {}),
        mine,
        all: report.total(labels.map((one) => report.total(score.counts[one] || []))),
        fixed: fixed.reduce((sum, one) => sum + held(owner.get(one), [one]), 0),
      };
    });

    /** Return how many documents of these labels the configured threshold drops: that was counted. */
    function held(which, labels) {
      if (which === undefined) return 0;
      const holds = labels.reduce((sum, one) => sum + ((which.holds || {})[one] || 0), 0),
        all = labels.reduce((sum, one) => sum + report.total(score.counts[one] || []), 0);
      return (which.sign[0] === "<") === lower ? holds : all - holds;
    }
    const cells = rows.map(() => ({
      drops: el("td", { class: "numeric" }),
      keeps: el("td", { class: "numeric" }),
      share: el("td", { class: "numeric" }),
      more: el("td", { class: "numeric" }),
    }));
    const field = el("input", {
      type: "number",
      step: "any",
      inputmode: "decimal",
      "data-key": `value/${score.field}/${mark.rule}/${mark.label}`,
      "aria-label": `Threshold of ${mark.rule} on ${score.field}`,
      change: () => {
        const typed = Number(field.value);
        if (field.value !== "" && Number.isFinite(typed)) move(typed);
        else field.value = String(threshold.value);
      },
    });
    const back = el("button", { type: "button", click: () => go(mark.value) }, "As configured");
    const half = el(
      "button",
      { type: "button", class: "half", click: () => go(bins.quantile(rows[0].counts, 0.5, rows[0].on)) },
      mark.drops ? "Keep half" : "To the middle",
    );
    const changed = el("span", { hidden: true }, ", moved");
    const names = mark.drops ? ["Dropped", "Kept"] : orEqual ? ["Up to it", "Above"] : ["Below", "From there on"];
    let move = () => {};
    const threshold = {
      name: `${mark.rule} on ${score.field}`,
      value: mark.value,
      drops: mark.drops,
      says,
      moved: fill,
    };

    /** Return how many are on the side that is dropped (below, if none is), and whether that was counted. */
    function side(row, value) {
      if (value === mark.value && mark.holds !== null) return [held(mark, row.mine) + row.fixed, true];
      const below = Math.round(bins.below(row.counts, value, row.on, orEqual));
      return [(lower ? below : report.total(row.counts) - below) + row.fixed, false];
    }

    function says(value) {
      const [drops] = side(rows[0], value),
        { all } = rows[0];
      return `${measure(value)}: ${mark.drops ? "drops" : orEqual ? "up to it are" : "below it are"} ${count(drops)} of ${count(all)}, ${percent(all - drops, all)} ${mark.drops ? "stay" : "are not"}`;
    }

    function fill(value) {
      if (document.activeElement !== field || Number(field.value) !== value) field.value = String(value);
      changed.hidden = value === mark.value;
      rows.forEach((row, place) => {
        const [drops, exact] = side(row, value),
          { all, after, afterOn } = row,
          about = exact || drops === 0 || drops === all ? "" : "≈ ";
        const below = Math.round(bins.below(after, value, afterOn, orEqual)),
          stays = report.total(after);
        cells[place].drops.textContent = about + count(drops);
        cells[place].keeps.textContent = about + count(all - drops);
        cells[place].share.textContent = percent(all - drops, all);
        cells[place].more.textContent =
          value === mark.value && mark.drops && mark.holds !== null ? "0" : `≈ ${count(lower ? below : stays - below)}`;
      });
    }
    function go(value) {
      move(value);
      page.say(says(value));
    }

    fill(mark.value);
    const stays = Object.keys(score.after || {}).length > 0 && mark.drops !== "";
    const element = el(
      "div",
      { class: "dial" },
      el(
        "p",
        { class: "dial-name" },
        el(
          "span",
          { class: `tag ${mark.drops ? "dropped" : "note"}` },
          mark.drops ? `drops ${mark.drops === "below" ? "below" : "above"}` : "compares",
        ),
        " ",
        el("bdi", {}, mark.rule),
        " ",
        el("code", {}, mark.text),
        " ",
      ),
      el("div", { class: "controls" }, el("label", {}, el("span", {}, "Threshold", changed), field), half, back),
      el(
        "div",
        { class: "scroll", role: "region", tabindex: "0", "aria-label": `Effect of ${mark.rule} on ${score.field}` },
        el(
          "table",
          { class: "effect" },
          el("caption", { class: "visually-hidden" }, `What this threshold of ${mark.rule} alone would do`),
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              el("td"),
              names.map((name) => el("th", { scope: "col", class: "numeric" }, name)),
              el("th", { scope: "col", class: "numeric" }, mark.drops ? "Kept" : "Share", ", %"),
              stays
                ? el(
                    "th",
                    {
                      scope: "col",
                      class: "numeric",
                      title: "of the documents that stay now, those on the dropped side",
                    },
                    "New drops",
                  )
                : null,
            ),
          ),
          el(
            "tbody",
            {},
            rows.map(({ label: each }, place) =>
              el(
                "tr",
                {},
                el("th", { scope: "row" }, each === null ? "All languages" : el("bdi", {}, report.name(each))),
                cells[place].drops,
                cells[place].keeps,
                cells[place].share,
                stays ? cells[place].more : null,
              ),
            ),
          ),
        ),
      ),
    );
    return {
      element,
      threshold,
      follow: (given) => {
        move = given;
      },
    };
  }
})();
