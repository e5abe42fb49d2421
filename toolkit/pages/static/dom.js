"use strict";
/* Elements from data. Text becomes text nodes, attributes come from our code: nothing of a document is ever HTML. */
globalThis.page = (() => {
  const ATTRIBUTES =
    /^(aria-[a-z]+|class|colspan|data-key|data-label|dir|for|hidden|id|inputmode|lang|name|open|role|scope|selected|step|tabindex|title|type|value)$/;

  /** Return an element. `properties`: attributes (null and false are left out), or functions, which hear its events. */
  function el(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (value === null || value === undefined || value === false) continue;
      else if (ATTRIBUTES.test(name)) made.setAttribute(name, value === true ? "" : String(value));
      else throw new Error(`el: no attribute ${name}`);
    }
    add(made, children);
    return made;
  }

  function add(parent, children) {
    for (const child of children) {
      if (Array.isArray(child)) add(parent, child);
      else if (child instanceof Node) parent.append(child);
      else if (child !== null && child !== undefined && child !== false) parent.append(visible(String(child)));
    }
  }

  const NAMES = {
    0x00: "NUL",
    0x07: "BEL",
    0x08: "BS",
    0x0b: "VT",
    0x0c: "FF",
    0x0d: "CR",
    0x1b: "ESC",
    0x7f: "DEL",
    0x85: "NEL",
    0x2028: "LS",
    0x2029: "PS",
    0x202a: "LRE",
    0x202b: "RLE",
    0x202c: "PDF",
    0x202d: "LRO",
    0x202e: "RLO",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xfeff: "BOM",
    0xfffe: "FFFE",
    0xffff: "FFFF",
  };
  // Directions that text can be reversed with, and what cannot be seen. What scripts need (joiners, marks) stays.
  const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2061-\u2069\ufeff\ufffe\uffff]/;

  /** Return text as nodes; characters that cannot be seen, or turn the order of others, stand by their names. */
  function visible(text) {
    if (!UNSEEN.test(text)) return document.createTextNode(text);
    const made = document.createDocumentFragment();
    let from = 0;
    for (const found of text.matchAll(new RegExp(UNSEEN, "g"))) {
      const code = found[0].charCodeAt(0),
        hex = code.toString(16).toUpperCase().padStart(4, "0");
      if (found.index > from) made.append(text.slice(from, found.index));
      const shown = document.createElement("span");
      shown.className = "control";
      shown.title = `U+${hex}`;
      shown.textContent = NAMES[code] || hex;
      made.append(shown);
      from = found.index + 1;
    }
    made.append(text.slice(from));
    return made;
  }

  /** Return a link to an address of the web, which is told nothing of us; text where it is none. */
  function link(url, text) {
    let parsed = null;
    try {
      parsed = new URL(url);
    } catch {
      /* not an address */
    }
    const label = el("bdi", {}, text === undefined ? url : text);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) return label;
    const made = el("a", {}, label);
    made.href = parsed.href;
    made.rel = "noopener noreferrer nofollow";
    made.target = "_blank";
    return made;
  }

  /** Return a link to a place of this page. */
  function anchor(id, ...children) {
    const made = el("a", {}, children);
    made.href = `#${id}`;
    return made;
  }

  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
  const brief = (value) =>
    value === null || value === undefined ? "–" : value < 10000 ? whole.format(value) : short.format(value);

  /** Return a number of things: `1 line`, `2 lines`. */
  const some = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

  function bytes(value) {
    if (value === null || value === undefined) return "–";
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (value >= 999.5 && unit < units.length - 1) {
      value /= 1000;
      unit += 1;
    }
    return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
  }

  function percent(part, all) {
    if (!all || part === null || part === undefined) return "–";
    const share = (100 * part) / all;
    if (share === 0) return "0 %";
    if (share < 0.1) return "< 0.1 %";
    if (share > 99.9 && share < 100) return "> 99.9 %";
    return `${share < 10 ? share.toFixed(1) : Math.round(share * 10) / 10} %`;
  }

  /** Return a measured number in as many digits as tell something. */
  function measure(value) {
    if (typeof value !== "number") return value === null || value === undefined ? "null" : String(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return whole.format(value);
    return Number(value.toPrecision(4)).toString();
  }

  /** Say something to those who hear the page. */
  function say(text) {
    const place = document.getElementById("said");
    if (place) place.textContent = text;
  }

  return { el, add, visible, link, anchor, count, some, brief, bytes, percent, measure, say };
})();
