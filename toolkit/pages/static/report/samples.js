"use strict";
/* Sample documents: drawn by lot, of rules, near thresholds; pairs of near duplicates. */
(() => {
  const { el, count, measure } = page;
  const { report } = page;

  /** Return a document as a line that opens it. `field`: the value that is shown first. */
  function sample(run, place, field) {
    const given = run.samples[place],
      made = el("details", { class: "sample" });
    const value =
      field && field in given.values ? el("span", { class: "value number" }, measure(given.values[field])) : null;
    const outcome = given.dropped_by
      ? el("span", { class: "tag dropped" }, "dropped by ", el("bdi", {}, given.dropped_by))
      : el("span", { class: "tag kept" }, "kept");
    const begin = given.text.slice(0, 240).replace(/\s+/g, " ").trim();
    made.append(
      el(
        "summary",
        {},
        el(
          "span",
          { class: "sample-head" },
          value,
          outcome,
          el("span", { class: "muted" }, el("bdi", {}, report.name(given.label)), `, ${count(given.chars)} characters`),
        ),
        el("span", { class: "begin", dir: "auto", lang: page.tag(given.label) }, begin || "(no text)"),
      ),
    );
    made.addEventListener("toggle", () => {
      if (made.open && made.children.length === 1) page.add(made, [opened(given)]);
    });
    return el("li", {}, made);
  }

  function opened(given) {
    const values = Object.entries(given.values);
    const pairs = [
      ["Language", report.full(given.label)],
      ["Id", el("code", {}, given.id)],
      ["Source", given.source && el("bdi", {}, given.source)],
      ["Address", given.url && page.link(given.url)],
      ["Place", el("code", {}, `${given.shard}, row ${given.row}`)],
      ["Dropped by", given.dropped_by && el("bdi", {}, given.dropped_by)],
      ["Also", given.would_drop.length && `${given.would_drop.join(", ")} would drop it, too`],
      ["Rules", given.applied.length && given.applied.join(", ")],
      [
        "Values",
        values.length &&
          el(
            "span",
            { class: "values" },
            values.map(([name, value]) =>
              el(
                "span",
                {},
                el("code", {}, name),
                " ",
                el("strong", {}, typeof value === "object" && value !== null ? JSON.stringify(value) : measure(value)),
              ),
            ),
          ),
      ],
    ];
    return [
      el(
        "dl",
        { class: "facts" },
        pairs.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
      ),
      page.document(given, report.names),
    ];
  }

  function list(run, places, field, limit = 10) {
    const made = el(
      "ol",
      { class: "samples", role: "list" },
      places.slice(0, limit).map((place) => sample(run, place, field)),
    );
    const rest = places.slice(limit);
    if (!rest.length) return made;
    const more = el(
      "button",
      {
        type: "button",
        click: () => {
          more.remove();
          page.add(
            made,
            rest.map((place) => sample(run, place, field)),
          );
        },
      },
      `Show ${count(rest.length)} more`,
    );
    return [made, more];
  }

  const THRESHOLDS = 3; // of a rule, with what is near them; a rule may have one for each language

  /** Return what a rule dropped, and what is near its thresholds: `samples` has an entry for each of these. */
  page.ofRule = (run, rule, samples, label) => {
    if (!samples.length) return null;
    const of = (places) => (label === null ? places : places.filter((place) => run.samples[place].label === label));
    const verb = rule.role === "drops" ? "dropped" : rule.role === "edits" ? "edited" : "met";
    const [{ field, labels }] = samples,
      own = label === null ? [] : labels[label] || [];
    const all = [...new Set([...own, ...of(samples.flatMap((each) => each.dropped))])];
    const parts = [
      el("h4", {}, label === null ? `Documents that it ${verb}` : `${report.name(label)} documents that it ${verb}`),
      all.length
        ? list(run, all, field)
        : el("p", { class: "muted" }, `The report has no sample of ${report.of(label)} for it.`),
    ];
    const near = samples.map((each) => nearest(run, each, of)).filter((each) => each !== null);
    if (near.length) parts.push(near.slice(0, THRESHOLDS));
    else {
      const kept = of(samples[0].kept);
      if (kept.length) parts.push(el("h4", {}, "Documents that it let pass"), list(run, kept, field, 5));
    }
    return parts;
  };

  /** Return documents on both sides of a threshold, by their values; null where none has passed it. */
  function nearest(run, { field, value: threshold, dropped, kept }, of) {
    if (!field || !of(kept).length) return null;
    const value = (place) => run.samples[place].values[field],
      sorted = of([...dropped, ...kept])
        .filter((place) => typeof value(place) === "number")
        .sort((one, other) => value(one) - value(other));
    if (!sorted.length) return null;
    const under = sorted.filter((place) => value(place) < threshold),
      over = sorted.filter((place) => value(place) >= threshold);
    return [
      el("h4", {}, "Nearest to its threshold, by ", el("code", {}, field)),
      el(
        "ol",
        { class: "samples", role: "list" },
        under.slice(-6).map((place) => sample(run, place, field)),
        el("li", { class: "threshold" }, `threshold ${measure(threshold)}`),
        over.slice(0, 6).map((place) => sample(run, place, field)),
      ),
    ];
  }

  page.section("samples", (run, label) => {
    const drawn = Object.entries(run.drawn);
    if (!drawn.length) return null;
    if (label !== null) {
      const places = run.drawn[label] || [];
      return places.length
        ? list(run, places, null, 20)
        : el("p", { class: "muted" }, `The report has no sample of ${report.of(label)}.`);
    }
    const order = new Map(run.labels.map((each, place) => [each.label, place]));
    const firsts = drawn
      .sort(([one], [other]) => (order.get(one) ?? 1e9) - (order.get(other) ?? 1e9))
      .map(([, places]) => places[0])
      .filter((place) => place !== undefined);
    return [
      el("p", {}, "One document of each language, drawn by lot. Choose a language to see more of it."),
      list(run, firsts, null, 12),
    ];
  });

  page.section("pairs", (run, label) => {
    if (!run.pairs.length) return null;
    const pairs =
      label === null ? run.pairs : run.pairs.filter((pair) => pair.one.label === label || pair.other.label === label);
    if (!pairs.length) return el("p", { class: "muted" }, `The report has no pair of ${report.of(label)}.`);
    const made = el("ol", { class: "samples", role: "list" }),
      fill = (some) => page.add(made, some.map(pairOf));
    fill(pairs.slice(0, 12));
    const more =
      pairs.length > 12
        ? el(
            "button",
            {
              type: "button",
              click: () => {
                more.remove();
                fill(pairs.slice(12));
              },
            },
            `Show ${count(pairs.length - 12)} more`,
          )
        : null;
    return [made, more];
  });

  function pairOf(pair) {
    const made = el(
      "details",
      { class: "sample" },
      el(
        "summary",
        {},
        el(
          "span",
          { class: "sample-head" },
          pair.similarity === null
            ? null
            : el("span", { class: "value number" }, `${Math.round(100 * pair.similarity)} %`),
          el("span", { class: "tag" }, pair.set),
          el(
            "span",
            { class: "muted" },
            el("bdi", {}, report.name(pair.one.label)),
            pair.cluster ? `, a cluster of ${count(pair.cluster)}` : "",
          ),
        ),
        el(
          "span",
          { class: "begin", dir: "auto", lang: page.tag(pair.one.label) },
          pair.one.text.slice(0, 240).replace(/\s+/g, " "),
        ),
      ),
    );
    made.addEventListener("toggle", () => {
      if (!made.open || made.children.length > 1) return;
      const [one, other, known] = page.difference(pair.one, pair.other);
      const side = (given, text) =>
        el(
          "div",
          {},
          el(
            "p",
            { class: "sample-head" },
            el("span", { class: `tag ${given.kept ? "kept" : "dropped"}` }, given.kept ? "kept" : "dropped"),
            el("code", {}, given.id),
            el("span", { class: "muted" }, `${given.shard}, row ${given.row}, ${count(given.chars)} characters`),
          ),
          text,
        );
      made.append(el("div", { class: "pair" }, side(pair.one, one), side(pair.other, other)));
      if (!known) made.append(el("p", { class: "note" }, "The beginnings differ by too much to mark where."));
      else if (!made.querySelector("del, ins"))
        made.append(el("p", { class: "note" }, "The beginnings that the report has are the same."));
    });
    return el("li", {}, made);
  }
})();
