"use strict";
/* Sizes by language, source, host and ending; lengths; spans; duplicates; budgets. */
(() => {
  const { el, count, percent, brief, bytes } = page;
  const { report } = page;
  const MEASURES = [
    ["chars", "Characters", brief],
    ["words", "Words", brief],
    ["tokens", "Tokens", brief],
    ["lines", "Lines", brief],
    ["bytes", "Bytes", bytes],
  ];

  /** Return columns for documents before and after, and for each size that was counted. */
  function columns(run, rows) {
    const copied = run.totals.copies !== 0;
    const most = Math.max(1, ...rows.map((row) => row.before.documents));
    const has = (name) =>
      rows.some((row) => typeof row.before[name] === "number" || typeof row.after[name] === "number");
    return [
      {
        title: "Read",
        numeric: true,
        value: (row) => row.before.documents,
        help: "documents before the rules",
        bar: (row) => [row.before.documents / most],
      },
      {
        title: copied ? "Written" : "Stay",
        numeric: true,
        value: (row) => row.after.documents,
        help: copied ? "documents after the rules, each as often as it is written" : "documents after the rules",
      },
      {
        title: "Share",
        numeric: true,
        value: (row) => row.after.documents / (row.before.documents || 1),
        cell: (row) => percent(row.after.documents, row.before.documents),
        help: copied ? "documents written, by documents read" : "of the documents read, those that stay",
        bar: (row) => [row.after.documents / (row.before.documents || 1), "kept"],
      },
      ...MEASURES.filter(([name]) => has(name)).map(([name, title, shown]) => ({
        title,
        numeric: true,
        help: copied ? "of what is written (of what was read)" : "of the documents that stay (of those read)",
        value: (row) => row.after[name],
        cell: (row) => [shown(row.after[name]), el("span", { class: "muted of" }, ` of ${shown(row.before[name])}`)],
      })),
    ];
  }

  page.section("languages", (run, label) =>
    run.labels.length
      ? page.table({
          caption: "Sizes by language",
          rows: run.labels,
          sort: [2, "descending"],
          filter: "Find a language, a script or a code",
          chosen: (row) => row.label === label,
          limit: 20,
          columns: [
            {
              title: "Language",
              head: true,
              value: (row) => report.full(row.label),
              cell: (row) => [
                report.picker(row.label, "languages"),
                row.label === "" ? null : el("span", { class: "muted" }, ` ${row.label}`),
              ],
            },
            {
              title: "Script",
              value: (row) => {
                const known = report.facts.languages[row.label];
                return known ? `${known.script}${known.rtl ? " (right to left)" : ""}` : "";
              },
              cell: (row) => {
                const known = report.facts.languages[row.label];
                return known && known.script
                  ? [
                      known.script,
                      known.rtl ? el("span", { class: "muted", title: "written from right to left" }, " ←") : null,
                    ]
                  : "–";
              },
            },
            ...columns(run, run.labels),
          ],
        })
      : null,
  );

  const KINDS = { source: "source", host: "host", tld: "top-level domain", crawl: "crawl" };
  page.section("groups", (run) => {
    const groups = run.groups.filter((each) => each.top.length);
    if (!groups.length) return null;
    return groups.map((each) => {
      const kind = KINDS[each.by] || each.by,
        rows = [...each.top];
      if (each.rest) rows.push({ ...each.rest, rest: true, value: `${count(each.values - each.top.length)} others` });
      return page.table({
        caption: `Sizes by ${kind} (${count(each.values)})`,
        rows,
        sort: null,
        filter: `Find a ${kind}`,
        limit: 10,
        columns: [
          {
            title: kind[0].toUpperCase() + kind.slice(1),
            head: true,
            value: (row) => row.value,
            cell: (row) =>
              row.value === null ? el("i", {}, "none") : row.rest ? el("i", {}, row.value) : el("bdi", {}, row.value),
          },
          ...columns(run, rows),
        ],
      });
    });
  });

  page.section("lengths", (run, label) => {
    if (!run.lengths) return null;
    const { edges, before, after } = run.lengths,
      [read, stay] = [report.counts(before, label), report.counts(after, label)],
      bins = page.bins(edges);
    const middle = (counts) => (report.total(counts) ? page.measure(Math.round(bins.quantile(counts, 0.5))) : "–");
    return [
      el(
        "p",
        {},
        `Half of ${report.of(label)} that were read have at most about ${middle(read)} characters; of those that stay, about ${middle(stay)}.`,
      ),
      page.histogram({
        label: `lengths of ${report.of(label)}, in characters`,
        edges,
        series: [
          { name: "read", counts: read, colour: "--bin-read" },
          { name: "stay", counts: stay, colour: "--bin-stay" },
        ],
      }),
      page.binTable(`Lengths of ${report.of(label)}, in characters`, edges, [
        ["Read", read],
        ["Stay", stay],
      ]),
    ];
  });

  /** Return the numbers of a histogram as a table below a line that opens it. */
  page.binTable = (caption, edges, series) =>
    page.numbers({
      caption,
      limit: 60,
      rows: edges
        .slice(0, -1)
        .map((_, bin) => bin)
        .filter((bin) => series.some(([, counts]) => counts[bin])),
      columns: [
        { title: "From", numeric: true, value: (bin) => edges[bin], cell: (bin) => page.measure(edges[bin]) },
        {
          title: "To",
          numeric: true,
          value: (bin) => edges[bin + 1],
          cell: (bin) => (edges[bin + 1] === null ? "∞" : page.measure(edges[bin + 1])),
        },
        ...series.map(([title, counts]) => ({ title, numeric: true, value: (bin) => counts[bin] || 0 })),
      ],
    });

  page.section("spans", (run, label) => {
    const rows = run.spans.map((each) => ({
      each,
      found:
        label === null
          ? Object.values(each.labels).reduce((sum, one) => sum.map((value, place) => value + one[place]), [0, 0, 0])
          : each.labels[label] || [0, 0, 0],
    }));
    const edits = run.rules
      .filter((rule) => rule.role === "edits")
      .map((rule) => ({ rule, documents: page.cost(rule, label)[0] }));
    if (!rows.length && !edits.length) return null;
    const [before] = report.documents(run, label);
    return [
      rows.length
        ? page.table({
            caption: `What taggers marked in ${report.of(label)}`,
            rows: [...rows].sort((one, other) => other.each.pii - one.each.pii),
            filter: "Find a kind",
            columns: [
              {
                title: "Kind",
                head: true,
                value: (row) => row.each.field,
                cell: (row) => el("code", {}, row.each.field),
              },
              { title: "Set", value: (row) => row.each.set },
              {
                title: "Personal data",
                value: (row) => (row.each.pii ? "yes" : "no"),
                cell: (row) => (row.each.pii ? el("span", { class: "tag note" }, "personal") : "no"),
              },
              { title: "Documents", numeric: true, value: (row) => row.found[0] },
              {
                title: "Share",
                numeric: true,
                value: (row) => row.found[0] / (before || 1),
                cell: (row) => percent(row.found[0], before),
                bar: (row) => [row.found[0] / (before || 1)],
              },
              { title: "Spans", numeric: true, value: (row) => row.found[1] },
              { title: "Characters", numeric: true, value: (row) => row.found[2], cell: (row) => brief(row.found[2]) },
            ],
          })
        : null,
      rows.length && label === null
        ? page.table({
            caption: "Spans by language",
            filter: "Find a language or a kind",
            sort: [3, "descending"],
            limit: 10,
            rows: rows.flatMap((row) =>
              Object.entries(row.each.labels).map(([each, found]) => ({ label: each, field: row.each.field, found })),
            ),
            columns: [
              {
                title: "Language",
                head: true,
                value: (row) => report.full(row.label),
                cell: (row) => report.picker(row.label, `spans/${row.field}`),
              },
              { title: "Kind", value: (row) => row.field, cell: (row) => el("code", {}, row.field) },
              { title: "Documents", numeric: true, value: (row) => row.found[0] },
              { title: "Spans", numeric: true, value: (row) => row.found[1] },
            ],
          })
        : null,
      edits.length
        ? page.table({
            caption: "What rules replace or cut",
            rows: edits,
            sort: [1, "descending"],
            columns: [
              { title: "Rule", head: true, value: (row) => row.rule.name, cell: (row) => page.ruleName(row.rule) },
              { title: "Documents", numeric: true, value: (row) => row.documents },
              { title: "Spans, in all languages", numeric: true, value: (row) => row.rule.spans },
            ],
          })
        : null,
    ];
  });

  page.section("duplicates", (run, label) => {
    const everywhere = label === null ? "" : ", in all languages";
    if (!run.duplicates.length && !run.orphans.length) return null;
    return [
      run.orphans.length
        ? page.table({
            caption: `${page.some(report.total(run.orphans.map((each) => each.documents)), "document")} dropped as copies of documents that are not kept${everywhere}: nothing stands for them`,
            rows: run.orphans,
            columns: [
              { title: "Rule", head: true, value: (row) => row.rule, cell: (row) => el("bdi", {}, row.rule) },
              { title: "Set", value: (row) => row.set },
              { title: "Documents", numeric: true, value: (row) => row.documents, bar: () => [1, "dropped"] },
            ],
          })
        : null,
      run.duplicates.length
        ? page.table({
            caption: `Duplicates by set${everywhere}`,
            rows: run.duplicates,
            columns: [
              { title: "Set", head: true, value: (row) => row.set },
              { title: "Kind", value: (row) => row.kind },
              { title: "Documents", numeric: true, value: (row) => row.documents },
              { title: "Copies of another", numeric: true, value: (row) => row.dropped },
              {
                title: "Share",
                numeric: true,
                value: (row) => row.dropped / (row.documents || 1),
                cell: (row) => percent(row.dropped, row.documents),
                bar: (row) => [row.dropped / (row.documents || 1), "dropped"],
              },
              {
                title: "Clusters",
                numeric: true,
                value: (row) => (row.clusters.length ? row.clusters.reduce((sum, [, number]) => sum + number, 0) : null),
              },
              {
                title: "Largest",
                numeric: true,
                value: (row) => (row.clusters.length ? row.clusters[row.clusters.length - 1][0] : null),
              },
            ],
          })
        : null,
      run.duplicates
        .filter((each) => each.clusters.length)
        .map((each) =>
          page.numbers(
            {
              caption: `Clusters of ${each.set} by size`,
              rows: each.clusters,
              sort: [0, "ascending"],
              columns: [
                { title: "Documents in a cluster", numeric: true, value: (row) => row[0] },
                { title: "Clusters", numeric: true, value: (row) => row[1] },
              ],
            },
            `Clusters of ${each.set} by size`,
          ),
        ),
    ];
  });

  page.section("budget", (run) => {
    if (!run.budget) return null;
    const { unit, groups, redistributed } = run.budget,
      most = Math.max(1, ...groups.map((each) => each.taken));
    return [
      redistributed ? el("p", {}, "What a group could not give was taken from the others.") : null,
      page.table({
        caption: `What the budget takes, in ${unit}`,
        rows: groups,
        filter: "Find a group",
        sort: [3, "descending"],
        columns: [
          {
            title: "Group",
            head: true,
            value: (row) => row.group,
            cell: (row) => el("bdi", {}, report.names.has(row.group) ? report.full(row.group) : row.group),
          },
          {
            title: "There is",
            numeric: true,
            value: (row) => row.available,
            cell: (row) => brief(Math.round(row.available)),
          },
          {
            title: "Wanted",
            numeric: true,
            value: (row) => row.wanted,
            cell: (row) => (row.wanted === null ? "all" : brief(Math.round(row.wanted))),
          },
          {
            title: "Taken",
            numeric: true,
            value: (row) => row.taken,
            cell: (row) => brief(Math.round(row.taken)),
            bar: (row) => [row.taken / most, "kept"],
          },
          { title: "Documents", numeric: true, value: (row) => row.documents },
          { title: "Copies", numeric: true, value: (row) => row.copies },
        ],
      }),
    ];
  });
})();
