"use strict";
/* Tables that are sorted by a column and filtered by a word. Long ones begin with their first rows. */
(() => {
  const { el } = page;
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  let made = 0;

  /**
   * Return a table with its controls.
   *
   * caption: what it has. rows: of any kind. columns: {title, value: row → number | string | null, what is sorted by;
   * cell: row → what is shown (by default the value); numeric; head: whether it names the row; bar: row → [share, class];
   * wide: text that needs room; help}. sort: [place of a column, "ascending" | "descending"], or null for the order of the rows.
   * filter: label of the field for a word; null for none. limit: rows that are shown at first.
   * chosen: row → whether it is the one that the page is about.
   */
  page.table = ({ caption, rows, columns, sort = null, filter = null, limit = 12, chosen = null }) => {
    const id = `table-${(made += 1)}`,
      body = el("tbody"),
      state = { sort, word: "", all: rows.length <= limit + 3 };
    const heads = columns.map((column, place) =>
      el(
        "th",
        { scope: "col", class: column.numeric ? "numeric" : null, title: column.help },
        el("button", { type: "button", "data-key": `${caption}/${place}`, click: () => turn(place) }, column.title),
      ),
    );
    const table = el("table", { id }, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body);
    const more = el("button", {
      type: "button",
      "aria-controls": id,
      click: () => {
        state.all = !state.all;
        fill();
      },
    });
    const field =
      filter &&
      rows.length > 8 &&
      el("input", {
        type: "search",
        "data-key": `${caption}/filter`,
        input: (event) => {
          state.word = event.target.value;
          fill(true);
        },
      });
    const box = el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, table);

    function turn(place) {
      const numeric = columns[place].numeric,
        [now, way] = state.sort || [];
      state.sort = [
        place,
        now === place ? (way === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending",
      ];
      fill();
      page.say(`Sorted by ${columns[place].title}, ${state.sort[1]}`);
    }

    function sorted(list) {
      if (state.sort === null) return list;
      const [place, way] = state.sort,
        value = columns[place].value,
        sign = way === "ascending" ? 1 : -1;
      return [...list].sort((one, other) => {
        const [left, right] = [value(one), value(other)],
          none = (each) => each === null || each === undefined;
        if (none(left) || none(right)) return none(left) - none(right);
        return (
          sign * (typeof left === "number" && typeof right === "number" ? left - right : order.compare(left, right))
        );
      });
    }

    function fill(say) {
      const word = state.word.trim().toLocaleLowerCase(),
        whole = state.all || word !== "";
      const found =
        word === ""
          ? rows
          : rows.filter((row) =>
              columns.some((column) => !column.numeric && String(column.value(row)).toLocaleLowerCase().includes(word)),
            );
      const shown = sorted(found).slice(0, whole ? undefined : limit);
      body.replaceChildren(
        ...shown.map((row) =>
          el(
            "tr",
            { class: chosen && chosen(row) ? "chosen" : null },
            columns.map((column) => cell(column, row)),
          ),
        ),
      );
      if (shown.length === 0)
        body.append(
          el(
            "tr",
            {},
            el("td", { colspan: String(columns.length) }, rows.length ? "No row has this word." : "Nothing."),
          ),
        );
      heads.forEach((head, place) =>
        state.sort && state.sort[0] === place
          ? head.setAttribute("aria-sort", state.sort[1])
          : head.removeAttribute("aria-sort"),
      );
      more.textContent = state.all ? `Show the first ${limit}` : `Show all ${page.count(rows.length)}`;
      more.setAttribute("aria-expanded", String(state.all));
      if (say) page.say(`${page.count(found.length)} of ${page.count(rows.length)} rows`);
    }

    fill();
    const outer = el("div", { class: "sheet" });
    if (field) outer.append(el("div", { class: "controls" }, el("label", {}, filter, field)));
    outer.append(box);
    if (rows.length > limit + 3) outer.append(more);
    return outer;
  };

  function cell(column, row) {
    const shown = column.cell ? column.cell(row) : column.value(row),
      bar = column.bar && column.bar(row);
    const made = el(
      column.head ? "th" : "td",
      {
        scope: column.head ? "row" : null,
        class: column.numeric ? "numeric" : column.wide ? "wide" : null,
        "data-label": column.head ? null : column.title,
      },
      typeof shown === "number" ? page.count(shown) : shown === null || shown === undefined ? "–" : shown,
    );
    if (bar) {
      const [share, kind] = bar,
        strip = el("span", { class: `bar ${kind || ""}` });
      strip.style.width = `${Math.max(0, Math.min(100, 100 * share)).toFixed(1)}%`;
      made.append(strip);
    }
    return made;
  }

  /** Return a table below a line that opens it: the numbers of a chart. */
  page.numbers = (given, title = "The numbers as a table") => {
    const made = el("details", { class: "numbers" }, el("summary", {}, title));
    made.addEventListener("toggle", () => {
      if (made.open && made.children.length === 1) made.append(page.table(given));
    });
    return made;
  };
})();
