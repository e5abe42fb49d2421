"use strict";
/* Two runs side by side. */
(() => {
  const { el, count, percent, brief } = page;
  const { report } = page;
  const signed = (value, shown = count) => (value === 0 ? "0" : `${value > 0 ? "+" : "−"}${shown(Math.abs(value))}`);

  page.section("two", (_, label) => {
    const [one, other] = report.facts.runs;
    if (!other) return null;
    return [
      totals(one, other, label),
      rules(one, other, label),
      labels(one, other, label),
      lengths(one, other, label),
      stages(one, other),
      named(one, other),
      config(one, other),
    ];
  });

  const copied = (...runs) => runs.some((run) => run.totals.copies !== 0);

  function between(one, other, title = "Documents") {
    return [
      { title: one.name, numeric: true, value: (row) => row.one, help: `${title} of ${one.name}` },
      { title: other.name, numeric: true, value: (row) => row.other, help: `${title} of ${other.name}` },
      {
        title: "Difference",
        numeric: true,
        value: (row) => (row.other || 0) - (row.one || 0),
        cell: (row) => signed((row.other || 0) - (row.one || 0)),
      },
    ];
  }

  function totals(one, other, label) {
    const sizes = [one, other].map((run) => {
      const [read, stay] = report.documents(run, label),
        found = run.labels.find((each) => each.label === label);
      return {
        read,
        stay,
        before: found ? found.before.chars : label === null ? run.totals.chars : 0,
        after: report.written(run, label)[1],
        written: report.written(run, label)[0],
      };
    });
    const share = (value) => percent(value, 1);
    const row = (name, of, shown) => ({ name, one: of(sizes[0]), other: of(sizes[1]), shown });
    const [first, second, change] = between(one, other);
    const cell = (side) => (each) => (each.shown ? each.shown(each[side]) : count(each[side]));
    return page.table({
      caption: `Both runs, ${report.of(label)}`,
      rows: [
        row("Documents read", (size) => size.read),
        row("Documents that stay", (size) => size.stay),
        row("Share that stays", (size) => (size.read ? size.stay / size.read : 0), share),
        ...(copied(one, other) ? [row("Documents written, with copies", (size) => size.written)] : []),
        row("Characters read", (size) => size.before, brief),
        row(`Characters ${copied(one, other) ? "written" : "that stay"}`, (size) => size.after, brief),
      ],
      columns: [
        { title: "Number", head: true, value: (each) => each.name },
        { ...first, cell: cell("one") },
        { ...second, cell: cell("other") },
        {
          ...change,
          cell: (each) =>
            each.shown === share
              ? `${each.other > each.one ? "+" : ""}${((each.other - each.one) * 100).toFixed(1)} points`
              : each.shown
                ? signed(each.other - each.one, brief)
                : signed(each.other - each.one),
        },
      ],
    });
  }

  function joined(left, right, key, value) {
    const rows = new Map();
    for (const [side, list] of [
      ["one", left],
      ["other", right],
    ])
      for (const each of list) {
        const name = key(each);
        rows.set(name, { name, one: null, other: null, ...rows.get(name), [side]: value(each) });
      }
    return [...rows.values()];
  }

  function rules(one, other, label) {
    const rows = joined(
      one.rules,
      other.rules,
      (rule) => (rule.stream ? `${rule.name} (${rule.stream})` : rule.name),
      (rule) => page.cost(rule, label)[0],
    );
    return rows.length
      ? page.table({
          caption: `Rules: how many of ${report.of(label)} each met`,
          rows,
          filter: "Find a rule",
          sort: null,
          limit: 25,
          columns: [
            { title: "Rule", head: true, value: (row) => row.name, cell: (row) => el("bdi", {}, row.name) },
            ...between(one, other),
          ],
        })
      : null;
  }

  function labels(one, other, label) {
    const rows = joined(
      one.labels,
      other.labels,
      (each) => each.label,
      (each) => each.after.documents,
    );
    return rows.length
      ? page.table({
          caption: `Documents ${copied(one, other) ? "written, with copies" : "that stay"}, by language`,
          rows,
          filter: "Find a language",
          sort: [1, "descending"],
          chosen: (row) => row.name === label,
          columns: [
            {
              title: "Language",
              head: true,
              value: (row) => report.full(row.name),
              cell: (row) => report.picker(row.name, "two"),
            },
            ...between(one, other),
          ],
        })
      : null;
  }

  function lengths(one, other, label) {
    if (!one.lengths || !other.lengths || one.lengths.edges.join() !== other.lengths.edges.join()) return null;
    const series = [one, other].map((run, place) => ({
      name: `stay in ${run.name}`,
      counts: report.counts(run.lengths.after, label),
      colour: place ? "--hue-1" : "--bin-stay",
      line: place === 1,
    }));
    return [
      el("h3", {}, "Lengths of what stays, in characters"),
      page.histogram({
        label: `lengths of what stays of ${report.of(label)}, in both runs`,
        edges: one.lengths.edges,
        series,
      }),
      page.binTable(
        `Lengths of what stays of ${report.of(label)}`,
        one.lengths.edges,
        series.map((each) => [each.name, each.counts]),
      ),
    ];
  }

  function stages(one, other) {
    const rows = joined(
      one.stages,
      other.stages,
      (each) => (each.set ? `${each.stage} ${each.set}` : each.stage),
      (each) => each.seconds,
    );
    const cell = (side) => (row) => (row[side] === null ? "–" : `${Number(row[side].toPrecision(3))} s`);
    const [first, second] = between(one, other, "Seconds");
    return rows.length
      ? page.table({
          caption: "Time by stage",
          rows,
          columns: [
            { title: "Stage", head: true, value: (row) => row.name },
            { ...first, cell: cell("one") },
            { ...second, cell: cell("other") },
          ],
        })
      : null;
  }

  function named(one, other) {
    const list = (run) => [
      ...run.versions.map((each) => ["version", each.name, each.version]),
      ...run.models.map((each) => ["model", each.name, each.sha256.slice(0, 12)]),
    ];
    const rows = joined(
      list(one),
      list(other),
      (each) => `${each[0]} ${each[1]}`,
      (each) => each[2],
    ).filter((row) => row.one !== row.other);
    const [first, second] = between(one, other, "Versions");
    return rows.length
      ? page.table({
          caption: "Versions and models that differ",
          rows,
          columns: [
            { title: "Name", head: true, value: (row) => row.name },
            { ...first, numeric: false },
            { ...second, numeric: false },
          ],
        })
      : el("p", {}, "Versions and models are the same.");
  }

  function config(one, other) {
    if (one.config === other.config) return el("p", {}, "The configurations are the same.");
    const found = page.runs(one.config.split("\n"), other.config.split("\n"));
    if (found === null) return el("p", { class: "note" }, "The configurations differ by too much to show where.");
    const lines = el("pre", {
      class: "changes",
      tabindex: "0",
      role: "region",
      "aria-label": "What differs between the configurations",
    });
    found.forEach(([kind, list], place) => {
      if (kind !== 0) {
        list.forEach((line) => lines.append(el(kind < 0 ? "del" : "ins", {}, `${kind < 0 ? "−" : "+"} ${line}\n`)));
        return;
      }
      const head = place === 0 ? [] : list.slice(0, 3),
        foot = place === found.length - 1 ? [] : list.slice(Math.max(head.length, list.length - 3));
      const skipped = list.length - head.length - foot.length;
      page.add(lines, [
        head.map((line) => `  ${line}\n`),
        skipped > 0 ? el("span", { class: "muted" }, `  … ${count(skipped)} lines that are the same\n`) : null,
        foot.map((line) => `  ${line}\n`),
      ]);
    });
    return [el("h3", {}, "Configurations"), lines];
  }
})();
