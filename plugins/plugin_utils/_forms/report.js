// SPDX-License-Identifier: GPL-3.0-or-later
// Builds the table of hosts from the data block. What a host reported is only ever set as text.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { statuses, concerns, headings, hosts, texts, pictures, past } = data;
  const sources = new Map(Object.entries(data.sources));
  const CHUNK = 150; // rows per frame: the page stays responsive while a large fleet is drawn
  const SETTLED = new Set(["ok", "not_applicable"]); // their rows are left out on paper, and folded on a phone
  const byId = (id) => document.getElementById(id);

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // A long name breaks after a dot or an underscore, if it has to.
  function breakable(name) {
    const parts = name.match(/[^._]+[._]*|[._]+/g) || [];
    return parts.flatMap((part) => [part, element("wbr")]).slice(0, -1);
  }

  function mark(status) {
    return element("span", { class: `mark s-${statuses[status][0]}`, "aria-hidden": "true" }, statuses[status][1]);
  }

  const SORTS = [ // title, class, the value to show, the value to sort by
    ["type", "c-type", (host) => texts[host.type]],
    ["workload", "c-workload", (host) => texts[host.workload]],
    ["kernel", "c-kernel", (host) => texts[host.kernel]],
    [data.changes, "c-changes", (host) => (host.cells.every((status) => status < 0) ? "" : host.changes < 0 ? texts[host.state] : String(host.changes)), (host) => host.changes],
    ["last proof", "c-proof", (host) => texts[host.proof]],
  ];
  // A column in which nobody has anything is left out.
  const columns = SORTS.filter(([, , show]) => hosts.some((host) => show(host)));

  // On a narrow screen a concern in which no host has anything to do is left out, unless that is all of them.
  const settled = ["ok", "not_applicable", "waived"];
  const idle = concerns.map((_name, concern) => hosts.every((host) => host.cells[concern] < 0 || settled.includes(statuses[host.cells[concern]][0])));
  const calm = (concern) => (idle[concern] && idle.includes(false) ? " calm" : "");

  // --- the table ---

  const body = element("tbody");
  const rows = hosts.map(() => null);
  let drawn = 0;

  function head() {
    // A cell per column: a narrow screen hides some of them.
    const groups = element("tr", { class: "groups" }, element("td"), ...columns.map(([, name]) => element("td", { class: name })));
    for (const [number, title, members] of headings) {
      groups.append(element("th", { scope: "colgroup", colspan: members.length, title },
        element("span", { "aria-hidden": "true" }, String(number)), element("b", { class: "sr" }, title)));
    }
    const names = element("tr", {}, sortable("host", "corner", (host) => host.name, "none"));
    for (const [title, name, show, by] of columns) names.append(sortable(title, name, by || show, name === "c-changes" ? "descending" : "none"));
    concerns.forEach((name, concern) => {
      names.append(element("th", { scope: "col", class: `concern${calm(concern)}` }, element("div", { class: "name" }, name)));
    });
    // The remaining width is a column of its own: an open host must not spread the marks.
    names.append(element("td", { class: "rest" }));
    return element("thead", {}, groups, names);
  }

  function tone(host) {
    return texts[host.state] === "skipped" ? "muted" : "trouble";
  }

  function row(index) {
    const host = hosts[index];
    const label = element("span", { title: host.name }, host.name);
    const button = element("button", { type: "button", class: "host", "aria-expanded": "false", tabindex: index ? "-1" : "0" },
      label);
    const line = element("tr", { class: "row" }, element("th", { scope: "row" }, button));
    line.dataset.host = index;
    for (const [, name, show] of columns) line.append(element("td", { class: `fact ${name}`, title: show(host) }, show(host)));
    if (host.cells.every((status) => status < 0)) {
      line.classList.add("dim");
      line.append(element("td", { colspan: concerns.length + 1, class: `why ${tone(host)}` }, texts[host.trouble]));
      return line;
    }
    host.cells.forEach((status, concern) => {
      const cell = document.createElement("td");
      cell.className = (status < 0 ? "cell" : `cell s-${statuses[status][0]}`) + calm(concern);
      cell.textContent = status < 0 ? "" : statuses[status][1];
      cell.setAttribute("aria-label", status < 0 ? "nothing reported" : statuses[status][2]);
      cell.dataset.concern = concern;
      line.append(cell);
    });
    if (host.trouble) line.append(element("td", { class: `why ${tone(host)}` }, texts[host.trouble]));
    return line;
  }

  function draw(until) {
    const batch = document.createDocumentFragment();
    for (; drawn < Math.min(until, hosts.length); drawn += 1) {
      rows[drawn] = row(drawn);
      rows[drawn].hidden = !matches(hosts[drawn]);
      batch.append(rows[drawn]);
    }
    body.append(batch);
    if (drawn === hosts.length) document.documentElement.dataset.drawn = "all";
  }

  function drawOn() {
    draw(drawn + CHUNK);
    if (drawn < hosts.length) requestAnimationFrame(drawOn);
  }

  // --- sorting ---

  function sortable(title, name, value, direction) {
    const button = element("button", { type: "button", class: "sort" }, title);
    const head = element("th", { scope: "col", class: name, "aria-sort": direction, "data-title": title }, button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of document.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      draw(hosts.length);
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const keys = hosts.map((host) => value(host));
      const order = rows.map((_line, index) => index).sort((a, b) => (typeof keys[a] === "number" ? keys[a] - keys[b] : compare(keys[a], keys[b])) || a - b);
      if (descending) order.reverse();
      for (const index of order) body.append(rows[index], ...(expanded(rows[index]) ? [expanded(rows[index])] : []));
    });
    return head;
  }

  // --- trends ---

  // A line over the earlier audits and this one; a gap where the host was not among them.
  function trend([status, counts]) {
    const known = counts.filter((count) => count !== null);
    const top = Math.max(1, ...known);
    const place = (count, index) => `${((100 * index) / Math.max(1, counts.length - 1)).toFixed(1)} ${(22 - (20 * count) / top).toFixed(1)}`;
    const path = counts.map((count, index) => (count === null ? "" : `${index && counts[index - 1] !== null ? "L" : "M"}${place(count, index)}`)).join(" ");
    const names = { class: "spark", viewBox: "-2 0 104 24", preserveAspectRatio: "none", "aria-hidden": "true" };
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries(names)) picture.setAttribute(name, value);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", path);
    picture.append(line);
    const said = `${known[0]} → ${known[known.length - 1]}`;
    return element("div", { class: "trend" }, element("span", { class: "status" }, mark(status), statuses[status][2]), picture, element("b", {}, said));
  }

  // A host without a result in an audit counts as in the audit before.
  function fleetTrends() {
    const sums = new Map();
    for (const host of hosts) {
      for (const [status, counts] of host.trend) {
        const sum = sums.get(status) || counts.map(() => 0);
        let last = 0;
        counts.forEach((count, index) => { sum[index] += last = count === null ? last : count; });
        sums.set(status, sum);
      }
    }
    return [...sums].sort((a, b) => a[0] - b[0]).map(trend);
  }

  // --- one host ---

  // A part of a drawing and the parts in it; report.css arranges them.
  function partOf([kind, style, text, about, ...parts]) {
    const node = element("div", { class: `d-${texts[kind]} d-${texts[style]}`, title: texts[about] }, texts[text], ...parts.map(partOf));
    if (texts[kind] === "columns") node.setAttribute("aria-hidden", "true"); // the sentences below say the same
    return node;
  }

  function picture([parts, lines]) {
    const said = lines.map(([where, line]) => element("li", {}, element("b", {}, texts[where]), ` ${texts[line]}`));
    return element("figure", { class: "picture" }, ...parts.map(partOf), element("ul", { class: "queues" }, ...said));
  }

  // On paper `twin` is a host before this one with the same findings, whose sheet is enough.
  function sheet(host, twin) {
    const made = element("div", { class: "sheet" });
    const groups = host.groups.map((group) => texts[group]).join(", ");
    const facts = [texts[host.platform], texts[host.workload] && `planned for ${texts[host.workload]}`, groups && `in ${groups}`, texts[host.proof] && `last proof: ${texts[host.proof]}`].filter(Boolean);
    made.append(element("p", { class: "muted" }, facts.join(" · ")));
    if (twin) {
      made.append(element("p", {}, `The same findings as ${twin.name}.`));
      return made;
    }
    if (host.trouble) made.append(element("p", { class: tone(host) }, texts[host.trouble]));
    if (host.reboot) made.append(element("p", {}, `Needs a reboot: ${texts[host.reboot]}`));
    for (const note of host.notes) made.append(element("p", { class: "muted" }, texts[note]));
    if (host.picture) made.append(element("h3", {}, "Who does the network's work"), picture(pictures[host.picture]));
    const fine = host.rows.filter((row) => SETTLED.has(statuses[row[3]][0])).length;
    const unfold = element("button", { type: "button", class: "quiet unfold" }, `Show ${fine} that need no change`);
    unfold.addEventListener("click", () => { made.classList.add("unfolded"); unfold.remove(); });
    if (host.rows.length) made.append(element("h3", {}, "Settings"), ...common(host).map(([reason, count]) => element("p", { class: "common" }, `${count} settings: ${texts[reason]}`)), ...(fine ? [unfold] : []), table(host));
    if (host.trend.length) made.append(element("h3", {}, "Trend"), element("div", { class: "trends" }, ...host.trend.map(trend)));
    if (host.sizing.length) {
      const lines = host.sizing.map((line) => element("li", {}, texts[line]));
      made.append(element("h3", {}, "Sizing"), element("ul", {}, ...lines));
    }
    if (host.commands.length) made.append(commands(host));
    return made;
  }

  function commands(host) {
    const lines = host.commands.map((line) => texts[line]).join("\n");
    const script = element("pre", { tabindex: "0", "aria-label": `Commands for ${host.name}` }, element("code", {}, lines));
    return element("details", { class: "commands" }, element("summary", {}, "Commands that would do the same"), script);
  }

  // Reasons that many settings of a host share, each with their number: the table leaves them out.
  function common(host) {
    const counts = new Map();
    for (const [, , , , , , reason, , , , upkeep] of host.rows) if (!upkeep) counts.set(reason, (counts.get(reason) || 0) + 1);
    return [...counts].filter(([, count]) => count >= data.many);
  }

  // By concern, the heaviest finding first; what only keeps values over a reboot is folded.
  function table(host) {
    const widths = element("colgroup");
    for (const name of ["c-status", "c-knob", "c-value", "c-value", ""]) widths.append(element("col", { class: name }));
    const titles = element("tr");
    for (const name of ["Status", "Knob", data.now, "Wanted", "Why"]) titles.append(element("th", { scope: "col", "data-host": host.name }, name));
    const made = element("table", { class: "plain" }, element("caption", { class: "sr" }, `Findings of ${host.name}`), widths, element("thead", {}, titles));
    const worst = (rows) => Math.min(...rows.map(([, , , status, , , , , , , upkeep]) => status + (upkeep ? 100 : 0)));
    const groups = concerns.map((_name, concern) => host.rows.filter(([of]) => of === concern)).filter((rows) => rows.length);
    const said = new Set(common(host).map(([reason]) => reason));
    const upkeep = groups.flat().filter((row) => row[10]);
    const kept = groups.map((rows) => rows.filter((row) => !row[10])).filter((rows) => rows.length);
    for (const rows of kept.sort((a, b) => worst(a) - worst(b) || a[0][0] - b[0][0])) {
      const [number, title] = headings.find(([, , members]) => members.includes(rows[0][0]));
      const settled = rows.every((row) => SETTLED.has(statuses[row[3]][0])) ? "settled" : "";
      const name = element("th", { scope: "rowgroup", colspan: "5" }, concerns[rows[0][0]], element("span", { class: "from" }, ` ${number}  ${title}`));
      made.append(element("tbody", { "data-concern": rows[0][0], class: settled }, element("tr", { class: "heading" }, name), ...[...rows].sort((a, b) => a[3] - b[3]).map((row) => finding(row, said))));
    }
    if (upkeep.length) {
      const items = upkeep.map((row) => element("li", {}, `${concerns[row[0]]}: ${texts[row[6]]}`, row[5] ? element("span", { class: "from" }, ` ${texts[row[5]]}`) : ""));
      const folded = element("details", { class: "upkeep" }, element("summary", {}, `${data.kept} ${upkeep.length} ${upkeep.length === 1 ? "file or unit" : "files and units"}`), element("ul", {}, ...items));
      made.append(element("tbody", { "data-concern": "upkeep" }, element("tr", {}, element("td", { colspan: "5" }, folded))));
    }
    return made;
  }

  function value(title, text) {
    return element("td", { class: "value", "data-title": title }, texts[text]);
  }

  // The sources of a finding, each a link if the page knows its address.
  function linked(reference) {
    return reference.split("; ").flatMap((name, place) => {
      const url = sources.get(name);
      const shown = url ? element("a", { href: url, rel: "noreferrer" }, name) : name;
      return place ? ["; ", shown] : [shown];
    });
  }

  function finding([concern, knob, where, status, now, wanted, reason, reference, gain, owner, , worth, risk], said) {
    const why = element("td", {}, said.has(reason) ? "" : element("p", {}, texts[reason]));
    if (gain) why.append(element("p", { class: "gain" }, texts[gain]));
    if (owner) why.append(element("p", { class: "from" }, `Owner: ${texts[owner]}`));
    if (reference) why.append(element("p", { class: "from" }, "Source: ", ...linked(texts[reference])));
    const state = element("td", {}, element("span", { class: "status" }, mark(status), statuses[status][2]));
    if (worth >= 0) state.append(element("p", { class: "chips" }, element("span", { class: `chip w-${worth}` }, data.worth[worth]), element("span", { class: `chip r-${risk}` }, data.risk[risk])));
    const name = knob ? texts[knob] : concerns[concern];
    return element("tr", { class: SETTLED.has(statuses[status][0]) ? "settled" : "" },
      state,
      element("th", { scope: "row" }, element("code", {}, knob ? element("span", { class: "of" }, `${concerns[concern]}.`) : "", ...breakable(name)), where ? element("div", { class: "from" }, ...breakable(texts[where])) : ""),
      value(data.now, now), value("Wanted", wanted), why);
  }

  function expanded(line) {
    return line.nextElementSibling && line.nextElementSibling.classList.contains("detail") ? line.nextElementSibling : null;
  }

  function open(line, twin) {
    if (expanded(line)) return expanded(line);
    const button = line.querySelector(".host");
    const id = `host-${line.dataset.host}`;
    const detail = element("tr", { class: "detail", id }, element("td", { colspan: concerns.length + columns.length + 2 }, sheet(hosts[line.dataset.host], twin)));
    line.after(detail);
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-controls", id);
    return detail;
  }

  function close(line) {
    if (expanded(line)) expanded(line).remove();
    line.querySelector(".host").setAttribute("aria-expanded", "false");
  }

  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr.row");
    if (!line) return;
    const cell = event.target.closest("td.cell");
    if (!cell) {
      if (event.target.closest(".host")) (expanded(line) ? close : open)(line);
      return;
    }
    const place = open(line).querySelector(`[data-concern="${cell.dataset.concern}"], [data-concern="upkeep"]`);
    if (place) place.scrollIntoView({ block: "center" });
  });

  body.addEventListener("mouseover", (event) => {
    const cell = event.target.closest("td.cell");
    if (cell && !cell.title) cell.title = `${concerns[cell.dataset.concern]}: ${cell.getAttribute("aria-label")}`;
  });

  // One host is in the tab order; the arrow keys go to the others.
  body.addEventListener("keydown", (event) => {
    if (!event.target.matches(".host")) return;
    const lines = [...body.querySelectorAll("tr.row:not([hidden])")];
    const current = lines.indexOf(event.target.closest("tr"));
    const target = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (target === undefined || !lines[target]) return;
    event.preventDefault();
    focusable(lines[target].querySelector(".host")).focus();
  });

  function focusable(button) {
    for (const other of body.querySelectorAll('.host[tabindex="0"]')) other.tabIndex = -1;
    button.tabIndex = 0;
    return button;
  }

  // --- the filters ---

  const filters = byId("filters");
  const fields = { host: byId("f-host"), concern: byId("f-concern"), status: byId("f-status"), group: byId("f-group"), family: byId("f-family") };

  function matches(host) {
    const name = fields.host.value.trim().toLowerCase();
    const { concern, status, group, family } = fields;
    if (name && !host.name.toLowerCase().includes(name)) return false;
    if (group.value && !host.groups.includes(Number(group.value))) return false;
    if (family.value && host.family !== Number(family.value)) return false;
    if (!concern.value && !status.value) return true;
    return host.rows.some(([concernOfRow, , , statusOfRow]) => (!concern.value || concernOfRow === Number(concern.value)) && (!status.value || statusOfRow === Number(status.value)));
  }

  function plural(count) {
    return `${count} ${count === 1 ? "host" : "hosts"}`;
  }

  function filter() {
    let shown = 0;
    hosts.forEach((host, index) => {
      const wanted = matches(host);
      shown += wanted;
      const line = rows[index];
      if (!line) return;
      if (!wanted) close(line);
      line.hidden = !wanted;
    });
    byId("shown").textContent = shown === hosts.length ? plural(shown) : `${shown} of ${plural(hosts.length)}`;
    const first = body.querySelector("tr.row:not([hidden]) .host");
    if (first && !body.querySelector('tr.row:not([hidden]) .host[tabindex="0"]')) focusable(first);
    for (const button of document.querySelectorAll(".total")) {
      const chosen = fields.status.value && statuses[fields.status.value][0] === button.dataset.status;
      button.setAttribute("aria-pressed", chosen ? "true" : "false");
    }
  }

  function offer(select, entries) {
    for (const [value, words] of entries) select.append(element("option", { value }, words));
    select.closest("label").hidden = !entries.length;
  }

  function used(values) {
    return [...new Set(values)].filter(Boolean).map((value) => [value, texts[value]]).sort((a, b) => a[1].localeCompare(b[1]));
  }

  offer(fields.concern, concerns.map((name, concern) => [concern, name]));
  const present = new Set(hosts.flatMap((host) => host.rows.map(([, , , status]) => status)));
  offer(fields.status, statuses.map(([, , words], status) => [status, words]).filter(([status]) => present.has(status)));
  offer(fields.group, used(hosts.flatMap((host) => host.groups)));
  offer(fields.family, used(hosts.map((host) => host.family)));
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(filter));
  for (const button of document.querySelectorAll(".total")) {
    button.addEventListener("click", () => {
      const status = statuses.findIndex(([name]) => name === button.dataset.status);
      fields.status.value = button.getAttribute("aria-pressed") === "true" ? "" : String(status);
      filter();
      byId("fleet").scrollIntoView();
    });
  }

  // --- copy, theme, print ---

  if (navigator.clipboard) {
    for (const button of document.querySelectorAll(".copy")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.previousElementSibling.textContent);
        button.textContent = "Copied";
      });
    }
  }

  const theme = byId("theme");
  const root = document.documentElement;
  function paint(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    theme.textContent = dark ? "Light" : "Dark";
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  paint(system.matches);
  system.addEventListener("change", () => paint(system.matches));
  theme.addEventListener("click", () => paint(root.dataset.theme !== "dark"));
  theme.hidden = false;

  // What a host's sheet of paper says beside the host's name and kind: hosts that share it have one sheet.
  function printed(host) {
    const rows = host.rows.filter((row) => !SETTLED.has(statuses[row[3]][0]));
    return JSON.stringify([rows, host.trouble, host.workload, host.reboot, host.notes, host.trend, host.sizing]);
  }

  let before = null;
  addEventListener("beforeprint", () => {
    draw(hosts.length);
    before = { theme: root.dataset.theme, closed: rows.filter((line) => !line.hidden && !expanded(line)) };
    paint(false);
    const first = new Map();
    for (const line of body.querySelectorAll(".row:not([hidden])")) {
      const host = hosts[line.dataset.host];
      const twin = first.get(printed(host));
      if (!twin) first.set(printed(host), host);
      if (!expanded(line)) open(line, twin);
    }
  });
  addEventListener("afterprint", () => {
    before.closed.forEach(close);
    paint(before.theme === "dark");
  });

  // --- begin ---

  const map = byId("map");
  if (hosts.length) {
    map.append(element("table", { class: "map" },
      element("caption", { class: "sr" }, "Hosts and concerns. Enter on a host shows its findings; the arrow keys go from host to host."), head(), body));
    new ResizeObserver(() => map.style.setProperty("--wide", `${map.clientWidth}px`)).observe(map);
    filters.hidden = hosts.length === 1;
  } else {
    map.append(element("p", { class: "none" }, "The play had no hosts."));
  }
  for (const status of [...new Set(hosts.flatMap((host) => host.cells))].filter((status) => status >= 0).sort((a, b) => a - b)) {
    byId("legend").append(element("span", {}, mark(status), statuses[status][2]));
  }
  if (past.length) {
    byId("trends").append(...fleetTrends());
    byId("trend").hidden = !byId("trends").children.length;
  }
  filter();
  draw(CHUNK);
  if (drawn < hosts.length) requestAnimationFrame(drawOn);
  if (hosts.length === 1) open(rows[0]);
})();
