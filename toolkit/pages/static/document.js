"use strict";
/* One document as people read it: lines coloured by language, header and footer, spans marked where they stand. */
(() => {
  const { el, visible } = page;
  const HUES = 8,
    LINES = 300,
    CHARACTERS = 4000;

  /** Return the lines of a text, as Rust's `lines()` has them, as places [from, to) in units of the text. */
  function lines(text) {
    const found = [];
    for (let from = 0; from < text.length;) {
      let end = text.indexOf("\n", from);
      const next = end < 0 ? text.length : end + 1;
      if (end < 0) end = text.length;
      else if (end > from && text[end - 1] === "\r") end -= 1;
      found.push([from, end]);
      from = next;
    }
    return found;
  }

  /** Return a function from code points, in which spans are counted, to units of a JavaScript string. */
  function units(text, points) {
    if (!/[\ud800-\udbff]/.test(text)) return (point) => Math.min(point, text.length);
    const wanted = [...new Set(points)].sort((one, other) => one - other),
      found = new Map();
    let unit = 0,
      point = 0;
    for (const each of wanted) {
      while (point < each && unit < text.length) {
        unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
        point += 1;
      }
      found.set(each, unit);
    }
    return (each) => found.get(each);
  }

  /** Return the hues of languages: the document's own first, then others by their lines. */
  function hues(label, marks) {
    const counts = new Map();
    for (const [each] of marks) if (each !== null) counts.set(each, (counts.get(each) || 0) + 1);
    const order = [...counts.keys()].sort(
      (one, other) =>
        (other === label) - (one === label) || counts.get(other) - counts.get(one) || (one < other ? -1 : 1),
    );
    return new Map(
      order.map((each, at) => [each, { hue: at < HUES ? `hue-${at}` : "hue-none", count: counts.get(each) }]),
    );
  }

  const known =
    typeof Intl.DisplayNames === "function"
      ? new Intl.DisplayNames("en", { type: "language", fallback: "none" })
      : null;

  /** Return a label as HTML names languages (`fi`, `zh-Hant`); null if it is none that browsers know. */
  function tag(label) {
    const written = String(label || "").replace("_", "-");
    return /^[a-z]{2,3}(-[A-Z][a-z]{3})?$/.test(written) && known && known.of(written) !== undefined ? written : null;
  }

  /**
   * Return an element that shows a document.
   *
   * given: as a sample of a report has it: {text, chars (of the whole text, which may be longer), label,
   *         lines: [[label | null, prob | null], …], spans: [[name, start, end, score], …] in code points,
   *         header, footer: lines at the ends of the whole text}. All but `text` may be absent.
   * names: label → the name of a language, a Map.
   */
  function view(given, names) {
    const name = (label) => (names && names.get(label)) || label;
    const text = given.text,
      places = lines(text),
      marks = given.lines || [];
    const spans = (given.spans || []).map(([name, start, end, score]) => ({ name, start, end, score }));
    const cut = given.chars > text.length || (given.chars !== undefined && given.chars > [...text].length);
    const coloured = hues(given.label, marks),
      at = units(
        text,
        spans.flatMap((span) => [span.start, span.end]),
      );
    const kinds = [...new Set(spans.map((span) => span.name))];
    const kind = new Map(kinds.map((each, place) => [each, `hue-${(place + 3) % HUES}`]));
    const placed = spans
      .map((span) => ({ ...span, from: at(span.start), to: at(span.end) }))
      .filter((span) => span.to > span.from)
      .sort((one, other) => one.from - other.from);
    const list = el("ol", { class: "lines", tabindex: "0", "aria-label": "Lines of the document", role: "list" });
    const made = el("div", { class: "document" }, legend(coloured, kind, placed, { ...given, cut }, name), list);
    let shown = 0;
    const rest = el("button", { type: "button", click: () => fill(places.length) });
    function fill(upto) {
      for (; shown < Math.min(upto, places.length); shown += 1) list.append(line(shown));
      if (shown >= places.length) {
        rest.remove();
        return;
      }
      rest.textContent = `Show the other ${page.count(places.length - shown)} lines`;
      made.append(rest);
    }

    function line(index) {
      const [from, to] = places[index],
        [label, prob] = marks[index] || [null, null];
      const edge =
        index < (given.header || 0) ? "header" : index >= places.length - (given.footer || 0) && !cut ? "footer" : null;
      const foreign = label !== null && given.label && label !== given.label;
      const classes = [label === null ? "hue-none" : coloured.get(label).hue, foreign && "other", edge && "edge"];
      const said = label === null ? "" : `${label}${typeof prob === "number" ? ` ${prob.toFixed(2)}` : ""}`;
      const words = el("p", { class: "line", dir: "auto", lang: tag(label === null ? given.label : label) });
      stretch(words, from, Math.min(to, from + CHARACTERS));
      if (to > from + CHARACTERS) {
        const more = el(
          "button",
          {
            type: "button",
            click: () => {
              more.remove();
              stretch(words, from + CHARACTERS, to);
            },
          },
          `Show the other ${page.count(to - from - CHARACTERS)} characters`,
        );
        words.append(more);
      }
      const gutter = el("span", { class: "gutter", title: label === null ? null : name(label) }, said);
      return el(
        "li",
        { class: classes.filter(Boolean).join(" ") },
        gutter,
        words,
        edge && el("span", { class: "edge-name" }, edge),
      );
    }

    /** Put a stretch of the text below an element, cut where spans begin and end. */
    function stretch(parent, from, to) {
      const within = placed.filter((span) => span.from < to && span.to > from);
      const cuts = new Set([from, to]);
      for (const span of within) {
        cuts.add(Math.max(from, span.from));
        cuts.add(Math.min(to, span.to));
      }
      const order = [...cuts].sort((one, other) => one - other);
      for (let place = 0; place + 1 < order.length; place += 1) {
        const [start, end] = [order[place], order[place + 1]];
        const here = within.filter((span) => span.from <= start && span.to >= end),
          part = visible(text.slice(start, end));
        if (here.length === 0) {
          parent.append(part);
          continue;
        }
        const title = here
          .map((span) => span.name + (typeof span.score === "number" ? ` ${page.measure(span.score)}` : ""))
          .join(", ");
        const label =
          here.some((span) => span.from === start) && el("span", { class: "visually-hidden" }, `[${title}: `);
        const ends = here.some((span) => span.to === end) && el("span", { class: "visually-hidden" }, "]");
        parent.append(el("mark", { class: kind.get(here[here.length - 1].name), title }, label, part, ends));
      }
    }

    fill(LINES);
    return made;
  }

  function legend(coloured, kind, placed, given, name) {
    const items = [...coloured].map(([label, { hue, count }]) =>
      el("li", { class: hue }, el("i"), `${name(label)}: ${page.some(count, "line")}`),
    );
    for (const [each, hue] of kind) {
      const count = placed.filter((span) => span.name === each).length;
      items.push(el("li", { class: hue }, el("i", { class: "span" }), `${each}: ${page.some(count, "span")}`));
    }
    if (given.header) items.push(el("li", {}, `header: ${page.some(given.header, "line")}`));
    if (given.footer) items.push(el("li", {}, `footer: ${page.some(given.footer, "line")}`));
    if (given.cut) items.push(el("li", {}, "the beginning of the document"));
    return items.length ? el("ul", { class: "legend", "aria-label": "What is marked" }, items) : null;
  }

  page.tag = tag;
  page.document = view;
})();
