"use strict";
/* What the page is about: the facts, the run and the language that are chosen, and the sections that follow them. */
(() => {
  const { el } = page;
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const names = new Map(Object.entries(facts.languages).map(([label, language]) => [label, language.name]));
  const sections = new Map();
  const state = { run: 0, label: null };

  /** Say how a section is made: `make(run, label)` returns its parts, or null where the run has nothing of it. */
  page.section = (name, make) => sections.set(name, { make, stale: true });

  const report = (page.report = {
    facts,
    names,
    get run() {
      return facts.runs[state.run];
    },
    /** Return a label written out: `Finnish`, or what stands for documents without one. */
    name: (label) => (label === "" ? "no language" : names.get(label) || label),
    /** Return a label with its code: `Finnish (fi)`. */
    full: (label) =>
      label === ""
        ? "no language"
        : names.has(label) && names.get(label) !== label
          ? `${names.get(label)} (${label})`
          : label,
    /** Return what the numbers are of: `all documents`, `Finnish documents`. */
    of: (label) =>
      label === null
        ? "all documents"
        : label === ""
          ? "documents without a language"
          : `${report.name(label)} documents`,
    /** Return lists of counts added up over all labels, or those of one. */
    counts(by, label) {
      if (label !== null) return by[label] || [];
      const sum = [];
      for (const counts of Object.values(by))
        counts.forEach((each, bin) => {
          sum[bin] = (sum[bin] || 0) + each;
        });
      return sum;
    },
    total: (counts) => counts.reduce((sum, each) => sum + each, 0),
    /** Return how many documents of a label, or of all, were read, and how many of these no rule drops, each once. */
    documents(run, label) {
      if (label === null) return [run.totals.rows, run.totals.kept];
      const found = run.labels.find((each) => each.label === label);
      if (!found) return [0, 0];
      if (!report.byLabel(run)) return [found.before.documents, found.after.documents];
      const dropped = run.rules
        .filter((rule) => rule.role === "drops")
        .map((rule) => (rule.labels[label] || [0])[0]);
      return [found.before.documents, found.before.documents - report.total(dropped)];
    },
    /** Return documents and characters of a label, or of all, as often as they are written. */
    written(run, label) {
      const { kept, copies, kept_chars, copy_chars } = run.totals;
      if (label === null) return [kept + copies, kept_chars + copy_chars];
      const found = run.labels.find((each) => each.label === label);
      return found ? [found.after.documents, found.after.chars] : [0, 0];
    },
    choose(change) {
      Object.assign(state, change);
      if ("run" in change) control();
      const select = document.getElementById("label");
      if (select) select.value = state.label === null ? "*" : `=${state.label}`;
      document.documentElement.dataset.label = state.label === null ? "" : state.label;
      for (const section of sections.values()) section.stale = true;
      later();
      if ("label" in change) page.say(`The page shows ${report.of(state.label)}`);
    },
    /** Return a button that makes a language the one that the page is about. */
    picker: (label, where) =>
      el(
        "button",
        {
          type: "button",
          "data-key": `${where}/${label}`,
          click: () => report.choose({ label }),
          title: `Show ${report.of(label)} everywhere`,
        },
        el("bdi", {}, report.name(label)),
      ),
  });

  function control() {
    const place = document.getElementById("choices"),
      run = report.run;
    const label = el(
      "select",
      {
        id: "label",
        change: (event) => report.choose({ label: event.target.value === "*" ? null : event.target.value.slice(1) }),
      },
      el("option", { value: "*" }, `All languages (${page.count(run.totals.rows)})`),
      run.labels.map((each) =>
        el("option", { value: `=${each.label}` }, `${report.full(each.label)}: ${page.count(each.before.documents)}`),
      ),
    );
    const runs =
      facts.runs.length > 1 &&
      el(
        "select",
        { id: "run", change: (event) => report.choose({ run: Number(event.target.value) }) },
        facts.runs.map((each, place) => el("option", { value: place, selected: place === state.run }, each.name)),
      );
    const focused = document.activeElement && document.activeElement.id;
    place.replaceChildren(el("label", {}, el("span", {}, "Language"), label));
    if (runs) place.prepend(el("label", {}, el("span", {}, "Run"), runs));
    if (focused === "run" && runs) runs.focus();
    if (state.label !== null && !run.labels.some((each) => each.label === state.label)) state.label = null;
  }

  const THEMES = ["as the system", "light", "dark"];
  const theme = el(
    "label",
    {},
    el("span", {}, "Colours"),
    el(
      "select",
      {
        change: (event) => {
          const chosen = event.target.value;
          if (chosen === THEMES[0]) delete document.documentElement.dataset.theme;
          else document.documentElement.dataset.theme = chosen;
          page.recolour();
        },
      },
      THEMES.map((each) => el("option", { value: each }, each)),
    ),
  );

  function render(name) {
    const section = sections.get(name),
      place = document.getElementById(name),
      body = place.querySelector(".body");
    section.stale = false;
    const key = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const made = section.make(report.run, state.label);
    place.hidden = made === null;
    document.querySelector(`nav a[href="#${name}"]`).parentElement.hidden = made === null;
    body.replaceChildren();
    if (made !== null) page.add(body, [made]);
    if (key) {
      const again = [...body.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
      if (again) again.focus();
    }
  }

  /* Sections that can be seen are made at once, the others one by one while the browser has nothing else to do. */
  const idle = globalThis.requestIdleCallback || ((work) => setTimeout(work, 1));
  let waiting = false;
  function later() {
    for (const [name, section] of sections) {
      const box = document.getElementById(name).getBoundingClientRect();
      if (section.stale && box.top < innerHeight && (box.bottom > 0 || name === "summary")) render(name);
    }
    if (!waiting) {
      waiting = true;
      idle(next);
    }
  }
  function next() {
    const [name] = [...sections].find(([, section]) => section.stale) || [null];
    waiting = name !== null;
    if (waiting) {
      render(name);
      idle(next);
    } else {
      document.documentElement.dataset.ready = "true";
      performance.mark("ready");
    }
  }

  /* The section that is read is marked where sections are listed. */
  const places = new IntersectionObserver(
    (entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          for (const link of document.querySelectorAll("nav a"))
            if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
            else link.removeAttribute("aria-current");
        }
    },
    { rootMargin: "-20% 0px -75% 0px" },
  );

  page.start = () => {
    document.querySelector("footer").append(theme);
    control();
    later();
    for (const section of document.querySelectorAll("main > section")) places.observe(section);
  };

  /** Return whether the run says what rules do to a language; an output alone does not. */
  report.byLabel = (run) => !("rules.labels" in run.missing);
})();
