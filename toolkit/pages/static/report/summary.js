"use strict";
/* The summary; what came in; what the run is made of; speed. */
(() => {
  const { el, count, percent, bytes } = page;
  const { report } = page;

  page.section("summary", (run, label) => {
    const [before, after] = report.documents(run, label),
      sizes = label === null ? null : run.labels.find((each) => each.label === label);
    const copied = run.totals.copies !== 0,
      [documents, chars] = report.written(run, label),
      read = sizes ? sizes.before.chars : label === null ? run.totals.chars : 0,
      what = copied ? "written" : "that stay";
    const words = added(run, label, "words"),
      tokens = added(run, label, "tokens");
    const tiles = [
      tile(
        "Documents read",
        count(before),
        label === null
          ? page.some(run.labels.filter((each) => each.label !== "").length, "language")
          : `${percent(before, run.totals.rows)} of all documents`,
      ),
      tile("Documents that stay", count(after), `${percent(after, before)} of those read`, "kept"),
      copied && tile("Documents written", count(documents), "with copies"),
      tile(`Characters ${what}`, page.brief(chars), `${percent(chars, read)} of ${page.brief(read)}`),
      words && tile(`Words ${what}`, page.brief(words[1]), `of ${page.brief(words[0])}`),
      tokens && tile(`Tokens ${what}`, page.brief(tokens[1]), `of ${page.brief(tokens[0])}`),
    ];
    const meter = el(
      "div",
      { class: "meter", "aria-hidden": "true" },
      el("span", { class: "kept" }),
      el("span", { class: "dropped" }),
    );
    meter.firstChild.style.flexGrow = String(Math.max(after, 0));
    meter.lastChild.style.flexGrow = String(Math.max(before - after, 0));
    return [
      el("dl", { class: "tiles" }, tiles),
      meter,
      el(
        "ul",
        { class: "meter-legend" },
        el("li", { class: "kept" }, `${count(after)} stay`),
        el("li", { class: "dropped" }, `${count(Math.max(0, before - after))} are dropped`),
      ),
      worst(run, label, before),
      run.notes.map((note) => el("p", { class: "note" }, note)),
      missing(run),
    ];
  });

  function tile(name, value, more, kind) {
    return el(
      "div",
      { class: `tile ${kind || ""}` },
      el("dt", {}, name),
      el("dd", {}, el("strong", { class: "number" }, value), el("span", {}, more)),
    );
  }

  function added(run, label, field) {
    const rows = run.labels.filter((each) => label === null || each.label === label);
    if (!rows.some((each) => typeof each.before[field] === "number")) return null;
    return ["before", "after"].map((side) => rows.reduce((sum, each) => sum + (each[side][field] || 0), 0));
  }

  const PARTS = {
    came_in: "What came in",
    stages: "Speed",
    groups: "Sources and hosts",
    "rules.labels": "Rules by language",
  };

  function missing(run) {
    const parts = Object.entries(run.missing),
      name = (part) => PARTS[part] || part[0].toUpperCase() + part.slice(1);
    return parts.length
      ? el(
          "details",
          { class: "fold" },
          el("summary", {}, `What this report does not have (${count(parts.length)})`),
          el(
            "dl",
            { class: "facts" },
            parts.map(([part, why]) => [el("dt", {}, name(part)), el("dd", {}, why)]),
          ),
        )
      : null;
  }

  function worst(run, label, before) {
    if (label !== null && !report.byLabel(run))
      return el("p", { class: "note" }, `Rules by language: ${run.missing["rules.labels"]}`);
    const costs = run.rules
      .filter((rule) => rule.role === "drops")
      .map((rule) => [rule, ...page.cost(rule, label)])
      .sort((one, other) => other[1] - one[1]);
    if (!costs.length) return null;
    if (costs[0][1] === 0)
      return el(
        "p",
        { class: "lede" },
        `No rule drops ${label === null ? "a document" : `any of the ${report.of(label)}`}.`,
      );
    const [rule, documents, , unique] = costs[0];
    return el(
      "p",
      { class: "lede" },
      "The rule ",
      page.anchor("rule", el("bdi", {}, rule.name)),
      ` costs most: it drops ${count(documents)} of ${count(before)} ${label === null ? "documents" : report.of(label)} (${percent(documents, before)})`,
      unique === null ? "." : `, of which ${count(unique)} would be dropped by no other rule.`,
    );
  }

  page.section("came-in", (run) => {
    if (!run.came_in.length) return null;
    const reasons = run.came_in.flatMap((input) =>
      Object.entries(input.rejected).map(([reason, items]) => ({ source: input.source, reason, items })),
    );
    return [
      page.table({
        caption: "What was read, by source",
        rows: run.came_in,
        sort: null,
        filter: "Find a source",
        columns: [
          { title: "Source", head: true, value: (row) => row.source, cell: (row) => el("bdi", {}, row.source || "–") },
          { title: "Files", numeric: true, value: (row) => row.inputs },
          {
            title: "Size",
            numeric: true,
            value: (row) => row.bytes,
            cell: (row) => bytes(row.bytes),
            help: "of the files, as they are stored",
          },
          { title: "Documents", numeric: true, value: (row) => row.documents },
          {
            title: "Left out",
            numeric: true,
            value: (row) => report.total(Object.values(row.rejected)),
            help: "items that were no documents",
          },
        ],
      }),
      reasons.length
        ? page.table({
            caption: "What was left out, by reason",
            rows: reasons,
            sort: [2, "descending"],
            columns: [
              { title: "Source", head: true, value: (row) => row.source, cell: (row) => el("bdi", {}, row.source) },
              { title: "Reason", value: (row) => row.reason },
              { title: "Items", numeric: true, value: (row) => row.items },
            ],
          })
        : null,
    ];
  });

  page.section("speed", (run) => {
    if (!run.stages.length) return null;
    const most = Math.max(...run.stages.map((stage) => stage.seconds));
    return page.table({
      caption: "Work by stage, of all processes together",
      rows: run.stages,
      columns: [
        { title: "Stage", head: true, value: (row) => row.stage },
        { title: "Set", value: (row) => row.set || "", cell: (row) => row.set || "–" },
        { title: "Documents", numeric: true, value: (row) => row.documents },
        { title: "Text", numeric: true, value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
        {
          title: "Time",
          numeric: true,
          value: (row) => row.seconds,
          cell: (row) => seconds(row.seconds),
          bar: (row) => [row.seconds / (most || 1)],
        },
        {
          title: "Documents a second",
          numeric: true,
          value: (row) => (row.seconds ? row.documents / row.seconds : null),
          cell: (row) => (row.seconds ? page.brief(Math.round(row.documents / row.seconds)) : "–"),
        },
        {
          title: "MB a second",
          numeric: true,
          value: (row) => (row.seconds && row.bytes !== null ? row.bytes / row.seconds : null),
          cell: (row) =>
            row.seconds && row.bytes !== null && row.bytes !== undefined
              ? Number((row.bytes / row.seconds / 1e6).toPrecision(3)).toString()
              : "–",
        },
      ],
    });
  });

  function seconds(value) {
    if (value < 90) return `${Number(value.toPrecision(3))} s`;
    const whole = Math.round(value),
      minutes = Math.floor(whole / 60);
    return minutes < 90
      ? `${minutes} min ${whole % 60} s`
      : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  page.section("made-with", (run) => [
    el(
      "dl",
      { class: "facts" },
      [
        ["Dataset", run.dataset],
        ["Output", run.output],
      ]
        .filter(([, value]) => value)
        .map(([name, value]) => [el("dt", {}, name), el("dd", {}, el("code", {}, value))]),
    ),
    run.versions.length
      ? page.table({
          caption: "Versions",
          rows: run.versions,
          limit: 8,
          columns: [
            { title: "Program", head: true, value: (row) => row.name },
            { title: "Version", value: (row) => row.version },
          ],
        })
      : null,
    run.models.length
      ? page.table({
          caption: "Models",
          rows: run.models,
          limit: 8,
          columns: [
            { title: "Model", head: true, value: (row) => row.name },
            { title: "SHA-256", value: (row) => row.sha256, cell: (row) => el("code", {}, row.sha256) },
          ],
        })
      : null,
    run.sets.length ? el("h3", {}, "Attribute sets") : null,
    run.sets.map((made) =>
      el(
        "details",
        { class: "fold" },
        el(
          "summary",
          {},
          el("code", {}, made.set),
          made.stream ? ` (${made.stream})` : "",
          el("span", { class: "muted" }, ` ${Object.keys(made.keys).join(", ")}`),
        ),
        page.table({
          caption: `Attributes of ${made.set}`,
          rows: Object.entries(made.keys),
          columns: [
            { title: "Attribute", head: true, value: (row) => row[0] },
            { title: "Type", value: (row) => row[1], cell: (row) => el("code", {}, row[1]) },
          ],
        }),
        Object.keys(made.settings).length
          ? el(
              "pre",
              { tabindex: "0", role: "region", "aria-label": `Settings of ${made.set}` },
              JSON.stringify(made.settings, null, 2),
            )
          : null,
      ),
    ),
    run.config
      ? el(
          "details",
          { class: "fold" },
          el("summary", {}, "The configuration, as it was resolved"),
          el("pre", { tabindex: "0", role: "region", "aria-label": "The configuration" }, run.config),
        )
      : null,
  ]);
})();
