"use strict";
/* Browsing a corpus: a list of documents, one of them with all that is known of it, labels by hand. */
(() => {
  const { el } = page, byId = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const WAIT = 400;
  const state = { where: "", sort: "", order: "ascending", rule: "", first: 0, at: null, sets: null };
  let about = null, rows = [], shown = null, why = false, goes = false, turn = 0, opened = 0, apart = false;

  // --- asking -------------------------------------------------------------------------------------------------------

  async function ask(name, given, body) {
    const address = `/api/${name}?${new URLSearchParams(given || {})}`;
    const headers = { "X-Token": token };
    let answer;
    try {
      answer = await fetch(address, body === undefined ? { headers } : {
        method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
    } catch {
      throw new Error("no answer: `toolkit view` has ended; start it again, and open the address that it prints");
    }
    const type = answer.headers.get("Content-Type") || "";
    const told = type.startsWith("application/json") ? await answer.json() : { error: (await answer.text()).trim() };
    if (!answer.ok) throw new Error(told.error);
    return told;
  }

  function problem(text) {
    const place = byId("problem");
    place.hidden = !text;
    place.replaceChildren(text ? page.visible(text) : "");
    for (const id of ["where", "sort"]) byId(id).setAttribute("aria-invalid", text && text.startsWith(id === "where" ? "filter" : "sort") ? "true" : "false");
  }

  async function attempt(work) {
    try { await work(); } catch (error) { problem(error.message); }
  }

  const sets = () => state.sets.join(",");
  const asks = () => Boolean(state.where || state.sort || state.rule);

  // --- what is looked at, kept in the address -----------------------------------------------------------------------

  function remember() {
    const kept = new URLSearchParams();
    for (const [name, value] of [["where", state.where], ["sort", state.sort], ["rule", state.rule], ["first", state.first || ""], ["at", state.at ? state.at.join(".") : ""]])
      if (value) kept.set(name, value);
    if (state.order !== "ascending") kept.set("order", state.order);
    if (about && state.sets.length !== about.sets.length) kept.set("sets", sets());
    history.replaceState(null, "", `${location.pathname}${location.search}#${kept}`);
  }

  function recall() {
    const kept = new URLSearchParams(location.hash.slice(1));
    state.where = kept.get("where") || "";
    state.sort = kept.get("sort") || "";
    state.order = kept.get("order") === "descending" ? "descending" : "ascending";
    state.rule = about.mix ? kept.get("rule") || "" : "";
    state.first = Number.parseInt(kept.get("first") || "0", 10) || 0;
    const at = (kept.get("at") || "").split(".").map(Number);
    state.at = at.length === 2 && at.every(Number.isInteger) ? at : null;
    const known = about.sets.map((each) => each.name);
    state.sets = kept.has("sets") ? kept.get("sets").split(",").filter((name) => known.includes(name))
      : about.sets.filter((each) => each.on).map((each) => each.name);
  }

  // --- the list -----------------------------------------------------------------------------------------------------

  /** Show a page of the list, and a document of it: the first, the last, or the kept one, which is shown if it is there. */
  async function list(choose) {
    if (choose !== "kept") apart = false;
    const mine = (turn += 1);
    problem("");
    remember();
    for (let again = false; ; again = true) {
      const given = { first: state.first, count: about.page };
      if (asks()) Object.assign(given, { rule: state.rule, where: state.where, sort: state.sort, order: state.order, sets: sets() });
      const answer = await ask("rows", given);
      if (mine !== turn) return;
      const same = again && JSON.stringify(answer.rows.map((row) => row.at)) === JSON.stringify(rows.map((row) => row.at));
      if (!same) {
        rows = answer.rows;
        draw();
        const kept = state.at ? rows.findIndex((row) => String(row.at) === String(state.at)) : -1;
        if (rows.length && !apart && (choose !== "kept" || kept < 0 || !shown)) {
          await open(choose === "last" ? rows.length - 1 : choose === "first" ? 0 : Math.max(kept, 0), choose !== "kept");
        }
        if (rows.length) choose = "kept";
      }
      range(answer);
      if (answer.done) break;
      await new Promise((resolve) => setTimeout(resolve, WAIT));
      if (mine !== turn) return;
    }
    if (rows.length) return;
    if (!apart) empty();
    page.say("no documents");
  }

  function range(answer) {
    const last = state.first + rows.length, total = answer.total;
    const of = total === null || total === undefined ? "" : ` of ${page.count(total)}`;
    const done = answer.done ? "" : ` · ${answer.reads_documents ? "reading documents" : "looking"}: ${page.count(answer.scanned)}${answer.of ? ` of ${page.count(answer.of)}` : ""}`;
    const without = answer.without ? ` · ${page.count(answer.without)} without a value are not here` : "";
    const cut = answer.cut ? ` · only ${page.count(about.most)} are kept` : "";
    byId("range").textContent = (rows.length ? `${page.count(state.first + 1)}–${page.count(last)}${of}` : answer.done ? "no documents" : "…") + done + without + cut;
    byId("before").disabled = state.first === 0;
    byId("after").disabled = answer.done && (rows.length < about.page || (typeof total === "number" && last >= Math.min(total, asks() ? about.most : total)));
    if (answer.faults && answer.faults.length) problem(`${page.count(answer.faults.length)} shards could not be looked at:\n${answer.faults.join("\n")}`);
  }

  function draw() {
    byId("list").replaceChildren(...rows.map((row, index) => el("li", {}, el("button", {
      type: "button", "aria-current": String(row.at) === String(state.at) ? "true" : null, click: () => attempt(() => open(index, true)),
    },
    el("span", { class: "head", dir: "auto" }, row.faults.length ? el("span", { class: "fault" }, row.faults[0].slice(0, 300)) : row.head || "(no text)"),
    el("span", { class: "about" },
      row.score === null || row.score === undefined ? null : el("span", { class: "number" }, page.measure(row.score)),
      el("span", { class: "number" }, `${page.count(row.chars)} characters`), el("bdi", {}, row.source), given(row.labels)),
    ))));
  }

  function given(labels) {
    const said = Object.entries(labels || {}).map(([name, label]) => `${name}: ${label}`);
    return said.length ? el("span", { class: "given" }, said.join(", ")) : null;
  }

  async function turned(step) {
    const first = Math.max(0, state.first + step * about.page);
    if (first === state.first || (step > 0 && byId("after").disabled)) return;
    state.first = first;
    await list(step > 0 ? "first" : "last");
  }

  async function move(step) {
    const here = rows.findIndex((row) => String(row.at) === String(state.at)), next = here + step;
    if (next < 0) await turned(-1);
    else if (next >= rows.length) await turned(1);
    else await open(next, true);
  }

  // --- one document -------------------------------------------------------------------------------------------------

  /** Show no document: keys label nothing. */
  function empty() {
    shown = null;
    opened += 1;
    byId("main").replaceChildren();
  }

  async function open(index, focus, all) {
    const row = rows[index];
    apart = Boolean(focus); // who has chosen a document reads it, while a query still changes the list
    state.at = row.at;
    remember();
    const buttons = [...byId("list").querySelectorAll("button")];
    for (const [place, button] of buttons.entries()) {
      if (place === index) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    }
    if (focus) {
      document.body.classList.add("reading");
      if (buttons[index].offsetParent) buttons[index].focus();
    }
    await fetched(row.at, all, focus);
  }

  async function fetched(at, all, focus) {
    const mine = (opened += 1);
    const found = await ask("document", { shard: at[0], row: at[1], sets: sets(), all: all ? "1" : "0" });
    if (mine !== opened) return;
    shown = { ...found, at };
    show();
    if (focus && document.activeElement === document.body) byId("main").focus();
    page.say(`${found.id || "document"}, ${page.count(found.chars)} characters`);
    if (why) await explain();
  }

  function show() {
    const { marks } = shown, cut = shown.text.length < shown.chars && [...shown.text].length < shown.chars;
    const main = byId("main");
    main.replaceChildren(...[
      el("div", { class: "steps" },
        el("button", { type: "button", id: "back", click: back }, "Back to the list"),
        el("button", { type: "button", click: () => attempt(() => move(-1)) }, "Previous document"),
        el("button", { type: "button", click: () => attempt(() => move(1)) }, "Next document")),
      el("h2", { dir: "auto" }, shown.id || "(no id)"),
      el("p", { class: "about" }, el("bdi", {}, shown.source), ` · ${page.count(shown.chars)} characters · `, el("bdi", {}, shown.place)),
      ...shown.faults.map((each) => el("p", { class: "fault" }, each)),
      ...about.labels.questions.map(question),
      el("div", { class: "steps" },
        el("button", { type: "button", id: "goes", "aria-pressed": goes ? "true" : "false", click: going }, "Go on when all is answered"),
        about.mix ? el("button", { type: "button", id: "why", "aria-expanded": why ? "true" : "false", click: () => attempt(toggle) }, why ? "Hide the rules" : "Why is it kept or dropped?") : null,
        about.mix ? el("button", { type: "button", click: () => attempt(trace) }, "Where are its tokens?") : null),
      el("div", { id: "explained" }),
      el("div", { id: "traced" }),
      page.document({ text: shown.text, chars: shown.chars, label: marks.label, lines: marks.lines, spans: marks.spans, header: marks.header, footer: marks.footer }, names(marks)),
      cut ? el("button", { type: "button", click: () => attempt(() => fetched(state.at, true)) }, `Read all ${page.count(shown.chars)} characters`) : null,
      ...shown.values.map(({ set, rows }) => table(set, rows)),
      shown.fields.length ? table("Other fields of the document", shown.fields) : null,
    ].filter(Boolean));
  }

  function names(marks) {
    const labels = new Set([marks.label, ...marks.lines.map(([label]) => label)].filter((label) => page.tag(label)));
    let known = null;
    try { known = new Intl.DisplayNames("en", { type: "language" }); } catch { return new Map(); }
    return new Map([...labels].map((label) => { try { return [label, known.of(page.tag(label))]; } catch { return [label, label]; } }));
  }

  function table(name, rows) {
    const made = el("table", { class: "values" }, el("caption", {}, name), el("tbody", {}, rows.map(([path, text, cut]) =>
      el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, path)), el("td", { dir: "auto" }, text, cut ? el("span", { class: "muted" }, " …") : null)))));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, made);
  }

  function back() {
    document.body.classList.remove("reading");
    const current = byId("list").querySelector("[aria-current]");
    if (current) current.focus();
  }

  // --- why ----------------------------------------------------------------------------------------------------------

  async function toggle() {
    why = !why;
    byId("why").setAttribute("aria-expanded", String(why));
    byId("why").textContent = why ? "Hide the rules" : "Why is it kept or dropped?";
    if (why) await explain(); else byId("explained").replaceChildren();
  }

  async function explain() {
    const mine = opened, place = byId("explained");
    place.replaceChildren(el("p", { class: "muted" }, "Looking at the mix …"));
    try {
      const { streams } = await ask("explain", { shard: state.at[0], row: state.at[1] });
      if (mine !== opened) return;
      place.replaceChildren(...(streams.length ? streams.map(steps) : [el("p", {}, "The mix does not take this shard.")]));
    } catch (error) {
      if (mine === opened) place.replaceChildren(el("p", { class: "fault" }, error.message));
    }
  }

  async function trace() {
    const mine = opened, place = byId("traced");
    place.replaceChildren(el("p", { class: "muted" }, "Looking at the traces …"));
    const { streams } = await ask("trace", { shard: state.at[0], row: state.at[1] });
    if (mine !== opened) return;
    const lines = streams.flatMap(({ input, item, pieces }) => [
      input ? `From ${input}${item ? `, item ${page.count(item)}` : ""}` : "",
      ...pieces.map(({ file, tokens, span, copy }) => `${file}:${tokens.join("-")}, characters ${span.join("-")}${copy > 1 ? `, copy ${copy}` : ""}`),
    ]).filter(Boolean);
    place.replaceChildren(...(lines.length ? lines : ["No output has tokens of it."]).map((line) => el("p", {}, el("bdi", {}, line))));
  }

  function steps(found) {
    const fate = found.dropped === null ? "The mix keeps it." : `Dropped by ${found.dropped}.`;
    page.say(fate);
    const written = (values) => Object.entries(values).map(([name, value]) => `${name} = ${JSON.stringify(value)}`.slice(0, 400)).join("\n");
    const body = found.steps.map((step) => el("tr", { class: step.rule === found.dropped && step.verdict.startsWith("drops") ? "drops" : null },
      el("th", { scope: "row" }, step.rule), el("td", {}, step.verdict), el("td", { dir: "auto" }, written(step.values))));
    return el("div", {},
      el("p", { class: `fate ${found.dropped === null ? "kept" : "dropped"}` }, found.stream ? `${found.stream}: ` : "", fate),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rules" }, el("table", { class: "values why" },
        el("thead", {}, el("tr", {}, ["Rule", "What it does", "Values"].map((each) => el("th", { scope: "col" }, each)))), el("tbody", {}, body))));
  }

  // --- labels -------------------------------------------------------------------------------------------------------

  function choices() {
    return about.labels.questions.flatMap(({ name, labels }) => labels.map((label) => [name, label]));
  }

  function question({ name, labels }) {
    const all = choices();
    return el("fieldset", { class: "labelling" }, el("legend", {}, name), labels.map((label) => {
      const key = all.findIndex(([each, other]) => each === name && other === label) + 1;
      return el("button", { type: "button", "aria-pressed": shown.labels[name] === label ? "true" : "false", click: () => attempt(() => give(name, label)) },
        String(label), key < 10 ? el("kbd", { "aria-hidden": "true" }, key) : null);
    }));
  }

  function going() {
    goes = !goes;
    byId("goes").setAttribute("aria-pressed", String(goes));
  }

  async function give(name, label) {
    const of = shown, at = of.at, taken = of.labels[name] === label;
    const answer = await ask("label", {}, { at, id: of.id, question: name, label: taken ? null : label });
    problem("");
    if (answer.changes) await list("kept"); // others have labelled documents of the list, too
    of.labels = answer.labels;
    about.labels.documents = answer.documents;
    heading();
    for (const row of rows) if (String(row.at) === String(at)) row.labels = answer.labels;
    const focus = document.activeElement && byId("list").contains(document.activeElement);
    draw();
    if (focus) { const current = byId("list").querySelector("[aria-current]"); if (current) current.focus(); }
    if (shown === of) {
      const fields = [...byId("main").querySelectorAll(".labelling")], held = fields.findIndex((each) => each.contains(document.activeElement));
      const place = held >= 0 ? [...fields[held].querySelectorAll("button")].indexOf(document.activeElement) : -1;
      about.labels.questions.forEach((each, index) => fields[index].replaceWith(question(each)));
      if (place >= 0) byId("main").querySelectorAll(".labelling")[held].querySelectorAll("button")[place].focus();
    }
    if (goes && !taken && shown === of && about.labels.questions.every((each) => Object.hasOwn(of.labels, each.name))) await move(1);
    page.say(taken ? `${name}: taken away` : `${name}: ${label}, written`);
    if (answer.changes) problem(`${about.labels.path} has changed meanwhile:\n${answer.changes.join("\n")}`);
  }

  // --- controls -----------------------------------------------------------------------------------------------------

  function heading() {
    byId("title").textContent = about.title;
    const shards = `${page.count(about.shards.length)} ${about.kind === "dataset" ? "shards" : "files"}`;
    const labels = about.labels.documents ? ` · ${page.count(about.labels.documents)} labelled, in ${about.labels.path}` : "";
    byId("about").textContent = `${about.documents === null ? "" : `${page.count(about.documents)} documents in `}${shards}${labels}`;
    document.title = `${about.title} · view`;
  }

  function choose() {
    byId("sets-summary").textContent = `Sets: ${state.sets.length} of ${about.sets.length} on`;
    byId("sets").replaceChildren(...about.sets.map(({ name, keys }) => el("button", {
      type: "button", "aria-pressed": state.sets.includes(name) ? "true" : "false", title: keys.map(([key, type]) => `${key}: ${type}`).join("\n").slice(0, 2000),
      click: (event) => attempt(async () => {
        const on = new Set(state.sets);
        if (!on.delete(name)) on.add(name);
        state.sets = about.sets.map((each) => each.name).filter((each) => on.has(each));
        choose();
        [...byId("sets").children].find((each) => each.textContent === name).focus();
        event.preventDefault();
        remember();
        if (state.at) await fetched(state.at);
        apart = apart && !asks();
        if (asks()) await list("kept");
      }),
    }, name)));
    byId("sets-box").hidden = !about.sets.length;
  }

  function fill() {
    byId("where").value = state.where;
    byId("sort").value = state.sort;
    byId("order").value = state.order;
  }

  /** The rules of the mix: a button shows the documents that a rule drops, or those that stay. */
  function chosen() {
    if (!about.mix) return;
    const rules = [["kept", "kept by the mix", ""], ...about.mix.rules.map(({ name, expression }, index) => [String(index), name, expression])];
    const now = rules.find(([rule]) => rule === state.rule);
    byId("rules-box").hidden = false;
    byId("rules-summary").textContent = now ? `Only documents ${now[0] === "kept" ? now[1] : `that the mix drops by ${now[1]}`}` : "Documents that a rule of the mix drops";
    byId("rules").replaceChildren(...rules.map(([rule, name, expression]) => el("li", {},
      el("button", { type: "button", "aria-pressed": rule === state.rule ? "true" : "false", click: () => attempt(async () => {
        state.rule = rule === state.rule ? "" : rule;
        chosen();
        byId("rules").children[rules.findIndex(([each]) => each === rule)].firstChild.focus();
        await look();
      }) }, name), expression ? el("code", {}, expression) : null)));
  }

  async function look() {
    Object.assign(state, { where: byId("where").value.trim(), sort: byId("sort").value.trim(), order: byId("order").value, first: 0 });
    document.body.classList.remove("reading");
    apart = false;
    empty();
    try {
      await list("kept");
    } catch (error) {
      if (!shown && state.at && rows.length) await fetched(state.at); // the list is still that of before
      throw error;
    }
  }

  async function jump() {
    const id = byId("id").value.trim();
    if (!id) return;
    if (/^#\d{1,12}$/.test(id)) {
      state.first = Math.max(Number(id.slice(1)) - 1, 0);
      await list("first");
      return;
    }
    const { places, where } = await ask("find", { id });
    if (places && places.length === 1) {
      problem("");
      apart = true;
      state.at = places[0];
      remember();
      for (const button of byId("list").querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
      document.body.classList.add("reading");
      await fetched(state.at, false, true);
      byId("main").focus();
      return;
    }
    Object.assign(state, { where, sort: "", rule: "", first: 0 });
    fill();
    await list("first");
  }

  const KEYS = {
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    n: () => turned(1), p: () => turned(-1),
    "/": () => byId("where").focus(), s: () => byId("sort").focus(), g: () => byId("id").focus(),
    w: () => (byId("why") ? toggle() : null), a: () => (byId("goes") ? going() : null), "?": () => help(),
    Escape: () => back(),
  };

  function help() {
    byId("help").hidden = !byId("help").hidden;
    byId("keys").setAttribute("aria-expanded", String(!byId("help").hidden));
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !about) return;
    const target = event.target, within = target.closest ? target.closest("input, select, textarea") : null;
    if (within) {
      if (event.key === "Escape") { within.blur(); back(); }
      return;
    }
    if (event.key.startsWith("Arrow") && target.closest && target.closest("#main .lines, .scroll")) return; // they scroll
    if (event.key === "Enter" && byId("list").contains(target)) {
      event.preventDefault();
      const index = [...byId("list").children].findIndex((each) => each.contains(target));
      attempt(async () => {
        if (String(rows[index].at) !== String(state.at)) await open(index, true);
        document.body.classList.add("reading");
        byId("main").focus();
      });
      return;
    }
    const label = /^[1-9]$/.test(event.key) && shown ? choices()[Number(event.key) - 1] : null;
    const work = label ? () => give(...label) : Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (!work || (event.repeat && label)) return;
    event.preventDefault();
    attempt(async () => work());
  });

  byId("search").addEventListener("submit", (event) => { event.preventDefault(); attempt(look); });
  byId("clear").addEventListener("click", () => {
    for (const id of ["where", "sort"]) byId(id).value = "";
    state.rule = "";
    chosen();
    attempt(look);
  });
  byId("go").addEventListener("click", () => attempt(jump));
  byId("id").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); attempt(jump); } });
  byId("order").addEventListener("change", () => { if (state.sort) attempt(look); });
  byId("before").addEventListener("click", () => attempt(() => turned(-1)));
  byId("after").addEventListener("click", () => attempt(() => turned(1)));
  byId("keys").addEventListener("click", help);

  attempt(async () => {
    about = await ask("view");
    recall();
    heading();
    choose();
    fill();
    chosen();
    apart = Boolean(state.at) && !asks();
    await list("kept");
    if (apart && !shown) await fetched(state.at);
  });
})();
