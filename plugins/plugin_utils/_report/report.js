// SPDX-License-Identifier: GPL-3.0-or-later
// Builds the table of hosts from the data block. What a host reported is only ever set as text.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { statuses, concerns, headings, hosts, texts } = data;
  const sources = new Map(Object.entries(data.sources));
  const CHUNK = 150; // rows per frame: the page stays responsive while a large fleet is drawn
  const headingOf = new Map(headings.flatMap(([number, title, members]) => members.map((concern) => [concern, { number, title }])));
  const byId = (id) => document.getElementById(id);

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function mark(status) {
    return element("span", { class: `mark s-${statuses[status][0]}`, "aria-hidden": "true" }, statuses[status][1]);
  }

  // --- the table ---

  const body = element("tbody");
  const rows = hosts.map(() => null);
  let drawn = 0;

  function head() {
    const groups = element("tr", { class: "groups" }, element("td"));
    for (const [number, title, members] of headings) {
      groups.append(element("th", { scope: "colgroup", colspan: members.length, title },
        element("span", { "aria-hidden": "true" }, String(number)), element("b", { class: "sr" }, title)));
    }
    const names = element("tr", {}, element("th", { scope: "col", class: "corner" }, "host"));
    concerns.forEach((name, concern) => {
      names.append(element("th", { scope: "col", class: "concern" }, element("div", { class: "name" }, name)));
    });
    // The remaining width is a column of its own: an open host must not spread the marks.
    names.append(element("td", { class: "rest" }));
    return element("thead", {}, groups, names);
  }

  function row(index) {
    const host = hosts[index];
    const label = element("span", { title: host.name }, host.name);
    const button = element("button", { type: "button", class: "host", "aria-expanded": "false", tabindex: index ? "-1" : "0" },
      label, element("span", { class: "muted" }, texts[host.platform].split(" · ")[0]));
    const line = element("tr", { class: "row" }, element("th", { scope: "row" }, button));
    line.dataset.host = index;
    if (host.cells.every((status) => status < 0)) {
      line.classList.add("dim");
      line.append(element("td", { colspan: concerns.length + 1 }, texts[host.state] === "silent" ? "no result" : texts[host.state]));
      return line;
    }
    host.cells.forEach((status, concern) => {
      const cell = document.createElement("td");
      cell.className = status < 0 ? "cell" : `cell s-${statuses[status][0]}`;
      cell.textContent = status < 0 ? "" : statuses[status][1];
      cell.setAttribute("aria-label", status < 0 ? "nothing reported" : statuses[status][2]);
      cell.dataset.concern = concern;
      line.append(cell);
    });
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

  // --- one host ---

  function sheet(host) {
    const made = element("div", { class: "sheet" });
    const facts = [texts[host.platform], host.groups.map((group) => texts[group]).join(", ")].filter(Boolean);
    made.append(element("p", { class: "muted" }, facts.join(" · ")));
    if (host.trouble) made.append(element("p", { class: "trouble" }, texts[host.trouble]));
    if (host.reboot) made.append(element("p", {}, `Needs a reboot: ${texts[host.reboot]}`));
    for (const note of host.notes) made.append(element("p", { class: "muted" }, texts[note]));
    if (host.rows.length) made.append(table(host));
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

  function table(host) {
    const columns = element("colgroup");
    for (const name of ["c-status", "c-knob", "c-value", "c-value", ""]) columns.append(element("col", { class: name }));
    const titles = element("tr");
    for (const name of ["Status", "Knob", "Now", "Wanted", "Why"]) titles.append(element("th", { scope: "col" }, name));
    const made = element("table", { class: "plain" }, element("caption", { class: "sr" }, `Findings of ${host.name}`), columns, element("thead", {}, titles));
    for (const [number, title, members] of headings) {
      const findings = host.rows.filter(([concern]) => members.includes(concern));
      if (!findings.length) continue;
      const group = element("th", { scope: "rowgroup", colspan: "5" }, `${number}  ${title}`);
      made.append(element("tbody", { "data-heading": number }, element("tr", { class: "heading" }, group), ...findings.map(finding)));
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

  function finding([concern, knob, where, status, now, wanted, reason, reference, gain, owner]) {
    const why = element("td", {}, element("p", {}, texts[reason]));
    if (gain) why.append(element("p", { class: "gain" }, texts[gain]));
    if (owner) why.append(element("p", { class: "from" }, `Owner: ${texts[owner]}`));
    if (reference) why.append(element("p", { class: "from" }, ...linked(texts[reference])));
    const name = concerns[concern] + (knob ? `.${texts[knob]}` : "");
    return element("tr", {},
      element("td", {}, element("span", { class: "status" }, mark(status), statuses[status][2])),
      element("th", { scope: "row" }, element("code", {}, name), where ? element("div", { class: "from" }, texts[where]) : ""),
      value("Now", now), value("Wanted", wanted), why);
  }

  function expanded(line) {
    return line.nextElementSibling && line.nextElementSibling.classList.contains("detail") ? line.nextElementSibling : null;
  }

  function open(line) {
    if (expanded(line)) return expanded(line);
    const button = line.querySelector(".host");
    const id = `host-${line.dataset.host}`;
    const detail = element("tr", { class: "detail", id }, element("td", { colspan: concerns.length + 2 }, sheet(hosts[line.dataset.host])));
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
    const { number } = headingOf.get(Number(cell.dataset.concern));
    const place = open(line).querySelector(`[data-heading="${number}"]`);
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

  let before = null;
  addEventListener("beforeprint", () => {
    draw(hosts.length);
    before = { theme: root.dataset.theme, closed: rows.filter((line) => !line.hidden && !expanded(line)) };
    paint(false);
    before.closed.forEach(open);
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
    filters.hidden = false;
  } else {
    map.append(element("p", { class: "none" }, "The play had no hosts."));
  }
  for (const status of [...new Set(hosts.flatMap((host) => host.cells))].filter((status) => status >= 0).sort((a, b) => a - b)) {
    byId("legend").append(element("span", {}, mark(status), statuses[status][2]));
  }
  filter();
  draw(CHUNK);
  if (drawn < hosts.length) requestAnimationFrame(drawOn);
  if (hosts.length === 1) open(rows[0]);
})();
