"use strict";
/* The funnel of the rules; one rule by language; what it dropped. */
(() => {
  const { el, count, percent } = page;
  const { report } = page;
  const ROLES = {
    drops: "drops",
    annotates: "annotates",
    edits: "edits",
    routes: "routes",
    sets: "sets",
    repeats: "repeats",
  };
  let chosen = null;

  /** Return documents, characters and unique effects of a rule, for a label or for all. */
  page.cost = (rule, label) => {
    if (label === null) return [rule.documents, rule.chars, rule.unique === undefined ? null : rule.unique];
    const [documents, chars, unique] = rule.labels[label] || [0, 0, 0];
    return [documents, chars, rule.unique === null || rule.unique === undefined ? null : unique];
  };

  const same = (one, other) => one.name === other.name && one.stream === other.stream;
  page.ruleName = (rule) => [
    el("bdi", {}, rule.name),
    rule.stream ? el("span", { class: "muted" }, ` ${rule.stream}`) : null,
  ];

  page.section("rules", (run, label) => {
    if (!run.rules.length) return null;
    if (!report.byLabel(run)) label = null;
    const rows = run.rules.map((rule, place) => {
      const [documents, chars, unique] = page.cost(rule, label);
      return { rule, place: place + 1, documents, chars, unique };
    });
    const [before] = report.documents(run, label),
      most = Math.max(1, ...rows.map((row) => row.documents));
    const dropping = rows
      .filter((row) => row.rule.role === "drops")
      .sort((one, other) => other.documents - one.documents);
    const current = () => (chosen && run.rules.find((rule) => same(rule, chosen))) || (dropping[0] || rows[0]).rule;
    const panel = el("div", { id: "rule", class: "panel" });
    const table = page.table({
      caption: `What each rule does to ${report.of(label)}`,
      rows,
      sort: [4, "descending"],
      filter: "Find a rule",
      limit: 25,
      columns: [
        {
          title: "Rule",
          head: true,
          value: (row) => row.rule.name,
          cell: (row) => [
            el(
              "button",
              {
                type: "button",
                "data-key": `rule/${row.place}`,
                "aria-controls": "rule",
                click: () => {
                  chosen = row.rule;
                  show();
                  panel.focus();
                },
              },
              el("bdi", {}, row.rule.name),
            ),
            row.rule.stream ? el("span", { class: "muted" }, ` ${row.rule.stream}`) : null,
          ],
        },
        { title: "No.", numeric: true, value: (row) => row.place, help: "in the order in which rules decide" },
        {
          title: "Does",
          wide: true,
          value: (row) => `${ROLES[row.rule.role] || row.rule.role} ${row.rule.expression}`,
          cell: (row) => [
            ROLES[row.rule.role] || row.rule.role,
            row.rule.expression && row.rule.expression !== row.rule.name
              ? [" ", el("code", {}, row.rule.expression)]
              : null,
          ],
        },
        {
          title: "Reached",
          numeric: true,
          value: (row) => (label === null ? row.rule.reached : null),
          help: "documents that no rule before it has dropped; known for all languages together",
        },
        {
          title: "Documents",
          numeric: true,
          value: (row) => row.documents,
          bar: (row) => [row.documents / most, row.rule.role === "drops" ? "dropped" : ""],
        },
        {
          title: "Share",
          numeric: true,
          value: (row) => row.documents / (before || 1),
          cell: (row) => percent(row.documents, before),
          help: "of the documents read",
        },
        {
          title: "Only this rule",
          numeric: true,
          value: (row) => row.unique,
          help: "documents that it drops and no other rule would",
        },
        { title: "Characters", numeric: true, value: (row) => row.chars, cell: (row) => page.brief(row.chars) },
        {
          title: "Nulls",
          numeric: true,
          value: (row) => (label === null ? row.rule.nulls : null),
          help: "documents in which it compared a null; known for all languages together",
        },
      ].filter((column) => label === null || (column.title !== "Reached" && column.title !== "Nulls")),
      ...(label === null ? {} : { sort: [3, "descending"] }),
    });
    function show() {
      panel.replaceChildren();
      page.add(panel, [of(run, current(), label)]);
    }
    panel.tabIndex = -1;
    show();
    return [funnel(run, label, before), table, panel, counts("What the output format counted besides", "What", run.left_out),
      counts("Fields of the documents that the output does not carry", "Field", run.not_carried)];
  });

  /** Documents that are left after each rule that drops, one bar below the other. */
  function funnel(run, label, before) {
    const drops = run.rules.filter((rule) => rule.role === "drops");
    if (new Set(drops.map((rule) => rule.stream)).size > 1 || !drops.length || !before) return null;
    let rest = before;
    const shown = drops.map((rule) => {
      const [documents] = page.cost(rule, label);
      rest -= documents;
      return { rule, documents, rest };
    });
    const long = shown.filter((row) => row.documents > 0),
      rows = long.length > 24 ? long.sort((one, other) => other.documents - one.documents).slice(0, 24) : long;
    if (!rows.length) return null;
    const list = el(
      "ol",
      { class: "funnel" },
      row("read", before, 0),
      rows.map((each) => row(each.rule.name, each.rest, each.documents)),
    );
    function row(name, stay, dropped) {
      const bar = el(
        "span",
        { class: "track", "aria-hidden": "true" },
        el("span", { class: "stay" }),
        el("span", { class: "gone" }),
      );
      bar.firstChild.style.width = `${(100 * stay) / before}%`;
      bar.lastChild.style.width = `${(100 * dropped) / before}%`;
      return el(
        "li",
        {},
        el("span", { class: "what" }, el("bdi", {}, name)),
        bar,
        el(
          "span",
          { class: "number" },
          dropped ? `−${count(dropped)}` : count(stay),
          el("span", { class: "visually-hidden" }, dropped ? ` documents, ${count(stay)} are left` : " documents"),
        ),
      );
    }
    return el(
      "figure",
      { class: "chart" },
      el("figcaption", {}, `What is left of ${report.of(label)} after each rule, in the order in which rules decide`),
      list,
    );
  }

  function of(run, rule, label) {
    const [documents, , unique] = page.cost(rule, label);
    const [before] = report.documents(run, label);
    const rows = Object.entries(rule.labels).map(([each, [hit, chars, alone]]) => ({
      label: each,
      hit,
      chars,
      alone,
      all: report.documents(run, each)[0],
    }));
    const mine = run.of_rules.filter((each) => each.rule === rule.name && each.stream === rule.stream),
      scores = [...new Set(mine.map((each) => each.field).filter(Boolean))];
    return [
      el("h3", {}, "Rule ", el("bdi", {}, rule.name)),
      rule.expression
        ? el("pre", { tabindex: "0", role: "region", "aria-label": "Expression of the rule" }, rule.expression)
        : null,
      el(
        "p",
        {},
        `It ${rule.role} ${count(documents)} of ${count(before)} ${label === null ? "documents" : report.of(label)} (${percent(documents, before)})`,
        unique === null || unique === undefined ? "" : `; ${count(unique)} of them no other rule would drop`,
        rule.spans ? `; ${count(rule.spans)} spans` : "",
        rule.copies ? `; ${count(rule.copies)} copies of ${count(rule.repeated)} documents` : "",
        ".",
        scores.length
          ? [
              scores.length === 1 ? " Its threshold stands on " : " Its thresholds stand on ",
              scores.map((score, place) => [
                place ? ", " : null,
                el(
                  "button",
                  { type: "button", class: "text", click: () => page.showScore(score) },
                  el("code", {}, score),
                ),
              ]),
              ".",
            ]
          : null,
      ),
      page.ofRule(run, rule, mine, label),
      rows.length > 1
        ? page.table({
            caption: `${rule.name}, by language`,
            rows,
            sort: [1, "descending"],
            filter: "Find a language",
            chosen: (row) => row.label === label,
            limit: 8,
            columns: [
              {
                title: "Language",
                head: true,
                value: (row) => report.full(row.label),
                cell: (row) => report.picker(row.label, "rule"),
              },
              { title: "Documents", numeric: true, value: (row) => row.hit },
              {
                title: "Share of the language",
                numeric: true,
                value: (row) => row.hit / (row.all || 1),
                cell: (row) => percent(row.hit, row.all),
                bar: (row) => [row.hit / (row.all || 1), rule.role === "drops" ? "dropped" : ""],
              },
              ...(rule.role === "drops" ? [{ title: "Only this rule", numeric: true, value: (row) => row.alone }] : []),
              { title: "Characters", numeric: true, value: (row) => row.chars, cell: (row) => page.brief(row.chars) },
            ],
          })
        : null,
    ];
  }

  function counts(caption, title, found) {
    const rows = Object.entries(found || {});
    return rows.length
      ? page.table({
          caption,
          rows,
          columns: [
            { title, head: true, value: (row) => row[0] },
            { title: "Number", numeric: true, value: (row) => row[1] },
          ],
        })
      : null;
  }
})();
