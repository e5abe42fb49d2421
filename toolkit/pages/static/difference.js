"use strict";
/* What two texts have in common, word by word (Myers 1986), in a bounded number of steps. */
(() => {
  const { el } = page;
  const MOST = 600;

  function words(text, label) {
    if (typeof Intl.Segmenter === "function")
      return [...new Intl.Segmenter(page.tag(label) || "en", { granularity: "word" }).segment(text)].map(
        (part) => part.segment,
      );
    return text.match(/\s+|[^\s]+/gu) || [];
  }

  /** Return runs [kind, words], kind 0 in both, -1 in the first, 1 in the second; null where too much differs. */
  function runs(one, other) {
    let head = 0,
      foot = 0;
    while (head < one.length && head < other.length && one[head] === other[head]) head += 1;
    while (
      foot < one.length - head &&
      foot < other.length - head &&
      one[one.length - 1 - foot] === other[other.length - 1 - foot]
    )
      foot += 1;
    const left = one.slice(head, one.length - foot),
      right = other.slice(head, other.length - foot);
    const path = shortest(left, right);
    if (path === null) return null;
    const found = [];
    const put = (kind, word) => {
      if (found.length && found[found.length - 1][0] === kind) found[found.length - 1][1].push(word);
      else found.push([kind, [word]]);
    };
    one.slice(0, head).forEach((word) => put(0, word));
    path.forEach(([kind, word]) => put(kind, word));
    one.slice(one.length - foot).forEach((word) => put(0, word));
    return found;
  }

  function shortest(one, other) {
    const most = Math.min(MOST, one.length + other.length),
      middle = most + 1,
      ends = new Int32Array(2 * most + 3),
      trace = [];
    for (let edits = 0; edits <= most; edits += 1) {
      trace.push(ends.slice(middle - edits - 1, middle + edits + 2));
      for (let line = -edits; line <= edits; line += 2) {
        let x =
          line === -edits || (line !== edits && ends[middle + line - 1] < ends[middle + line + 1])
            ? ends[middle + line + 1]
            : ends[middle + line - 1] + 1;
        while (x < one.length && x - line < other.length && one[x] === other[x - line]) x += 1;
        ends[middle + line] = x;
        if (x >= one.length && x - line >= other.length) return back(one, other, trace);
      }
    }
    return null;
  }

  function back(one, other, trace) {
    const path = [];
    let x = one.length,
      y = other.length;
    for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
      const ends = trace[edits],
        at = (line) => ends[line + edits + 1],
        line = x - y;
      const before = line === -edits || (line !== edits && at(line - 1) < at(line + 1)) ? line + 1 : line - 1;
      const from = edits === 0 ? 0 : at(before),
        fromY = edits === 0 ? 0 : from - before;
      while (x > from && y > fromY) {
        path.push([0, one[x - 1]]);
        x -= 1;
        y -= 1;
      }
      if (edits > 0) {
        if (x > from) {
          path.push([-1, one[x - 1]]);
          x -= 1;
        } else {
          path.push([1, other[y - 1]]);
          y -= 1;
        }
      }
    }
    return path.reverse();
  }

  page.runs = runs;

  /** Return both texts as elements, what only one has marked, and whether that is known. */
  page.difference = (one, other) => {
    const found = runs(words(one.text, one.label), words(other.text, other.label));
    const side = (given, mine, name) => {
      const text = el("div", {
        class: "difference",
        role: "group",
        tabindex: "0",
        "aria-label": `Text of ${given.id}`,
        dir: "auto",
        lang: page.tag(given.label),
      });
      if (found === null) page.add(text, [given.text]);
      else
        for (const [kind, parts] of found)
          if (kind === 0) page.add(text, [parts.join("")]);
          else if (kind === mine) text.append(el(name, {}, parts.join("")));
      return text;
    };
    return [side(one, -1, "del"), side(other, 1, "ins"), found !== null];
  };
})();
