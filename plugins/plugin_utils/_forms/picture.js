// SPDX-License-Identifier: GPL-3.0-or-later
// Draws a host from its topology: sockets, nodes, caches, cores, CPUs, devices, and which CPUs do the network's work.
// What a host reported is only ever set as text.
"use strict";
const drawHost = (() => {
  const KINDS = new Map([["ebs", "EBS"], ["instance_store", "instance store"], ["xvd", "Xen"]]);
  const MOST = 4096; // CPUs that are drawn: a list of a hostile host may name billions

  function box(tag, name, ...children) {
    const node = document.createElement(tag);
    if (name) node.className = name;
    node.append(...children);
    return node;
  }

  // "0-3,8" as [0, 1, 2, 3, 8]; empty for anything else.
  function members(list) {
    const found = [];
    for (const part of /^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$/.test(list || "") ? list.split(",") : []) {
      const [first, last] = part.split("-").map(Number);
      for (let cpu = first; cpu <= (last === undefined ? first : last) && found.length < MOST; cpu += 1) found.push(cpu);
    }
    return found;
  }

  function size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; bytes >= 1024 && unit < 4; unit += 1) bytes /= 1024;
    return `${Number(bytes.toPrecision(4))} ${units[unit]}`;
  }

  // Divides CPUs by the first set that has them; the last part, with null, has those that no set has.
  function split(cpus, sets) {
    const left = new Set(cpus);
    const parts = [];
    sets.forEach((set, number) => {
      const mine = set.filter((cpu) => left.delete(cpu));
      if (mine.length) parts.push([number, mine]);
    });
    if (left.size) parts.push([null, [...left]]);
    return parts;
  }

  // CPU → [style, words] in one state, "now" or "wanted".
  function duties(nics, state) {
    const found = new Map();
    for (const nic of nics) {
      for (const row of nic.queues) {
        if (!row[state]) continue;
        const answering = members(row[state].cpus);
        const roles = [[answering.length > 1 ? "may" : "answers", answering], ["helps", members(row[state].rps)]];
        for (const [style, cpus] of roles) {
          for (const cpu of cpus) {
            const known = found.get(cpu) || [style, []];
            if (known[1].length < 6) known[1].push(`${{ may: "may handle the interrupts of", answers: "handles the interrupts of", helps: "helps with" }[style]} ${nic.name} queue ${row.queue}`);
            found.set(cpu, known);
          }
        }
      }
    }
    return found;
  }

  function who(served, online) {
    const cpus = members(served.cpus);
    const any = cpus.length > 1 && cpus.length === online.length;
    return any ? "any CPU" : cpus.length > 1 ? `one of CPUs ${served.cpus}` : cpus.length ? `CPU ${cpus[0]}` : "CPU not known";
  }

  // Commas are within lists of CPUs alone, and an arrow is a change.
  function words(served, online) {
    if (!served) return "no such queue";
    const helpers = served.rps ? ` · helpers ${served.rps}` : "";
    const senders = served.xps ? ` · sends for ${served.xps}` : "";
    return who(served, online) + helpers + senders;
  }

  function listed(cpus) {
    const [first, last] = [cpus[0], cpus[cpus.length - 1]];
    if (cpus.length > 2 && cpus.every((cpu, place) => cpu === first + place)) return `CPUs ${first}–${last}, one each`;
    return cpus.length > 8 ? `${cpus.length} CPUs, one each` : `CPUs ${cpus.slice(0, -1).join(", ")} and ${last}`;
  }

  // "2 queues: any CPU → CPUs 0 and 1"; neighbors that say the same, or get one CPU each, are one line.
  function lines(nic, online) {
    const found = [];
    for (const row of nic.queues) {
      const [now, wanted] = [words(row.now, online), words(row.wanted, online)];
      const moves = now !== wanted && /^CPU [0-9]+$/.test(wanted);
      const said = moves ? now : now === wanted ? `${now}, stays` : `${now} → ${wanted}`;
      const last = found[found.length - 1];
      if (last && last.said === said && last.moves === moves) last.to = row.queue;
      else found.push({ from: row.queue, to: row.queue, said, moves, cpus: [] });
      if (moves) found[found.length - 1].cpus.push(Number(wanted.slice(4)));
    }
    return found.map(({ from, to, said, moves, cpus }) => {
      const all = from !== to && found.length === 1;
      const which = all ? `${nic.queues.length} queues` : from === to ? `queue ${from}` : `queues ${from}–${to}`;
      const gets = new Set(cpus).size === 1 ? `CPU ${cpus[0]}` : listed(cpus);
      return `${which}: ${said}${moves ? ` → ${gets}` : ""}`;
    });
  }

  function cpuCells(cpus, work) {
    return cpus.map((cpu) => {
      const [style, said] = work.get(cpu) || ["idle", []];
      const cell = box("span", `cpu ${style}`, String(cpu));
      cell.title = said.length ? `CPU ${cpu}: ${said.join(", ")}` : `CPU ${cpu}: no work of the network`;
      return cell;
    });
  }

  function cores(layout, cpus, work) {
    return split(cpus, layout.cores.map(members)).map(([, mine]) => box("span", "core", ...cpuCells(mine, work)));
  }

  function caches(layout, cpus, work) {
    const shared = layout.caches.filter((cache) => cache.shared.length).sort((a, b) => (a.name < b.name ? 1 : -1))[0];
    if (!shared) return cores(layout, cpus, work);
    return split(cpus, shared.shared.map(members)).map(([number, mine]) => {
      const name = number === null ? "" : `${shared.name}${shared.size ? ` ${size(shared.size)}` : ""}`;
      return box("div", "cache", box("p", "label", name), box("div", "cores", ...cores(layout, mine, work)));
    });
  }

  function devices(layout, nics, node, only) {
    const here = (home) => (home === null || home === undefined ? only : home) === node;
    const found = nics.filter((nic) => here(nic.node)).map((nic) => box("span", "device nic", `${nic.name}${nic.driver ? ` ${nic.driver}` : ""}`));
    return [...found, ...layout.disks.filter((disk) => here(disk.node)).map((disk) => box("span", "device disk", `${disk.name} ${KINDS.get(disk.kind) || disk.kind}`))];
  }

  function nodeBox(layout, nics, node, cpus, work, only) {
    const name = `NUMA node ${node.id}${node.memory ? `, ${size(node.memory)}` : ""}`;
    const rest = devices(layout, nics, node.id, only);
    const made = box("div", "node", box("p", "label", name), box("div", "cores", ...caches(layout, cpus, work)));
    if (rest.length) made.append(box("div", "devices", ...rest));
    return made;
  }

  function machine(layout, nics, work) {
    const nodes = layout.nodes.slice(0, 1024);
    const only = nodes.length === 1 ? nodes[0].id : null;
    const all = layout.cores.flatMap(members).slice(0, MOST);
    const sockets = split(all, layout.sockets.map(members));
    const made = box("div", "machine");
    for (const [number, mine] of sockets) {
      const parts = split(mine, nodes.map((node) => members(node.cpus))).map(([place, cpus]) => (place === null
        ? box("div", "cores", ...caches(layout, cpus, work))
        : nodeBox(layout, nics, nodes[place], cpus, work, only)));
      const label = number === null ? "no socket named" : `Socket ${number + 1} of ${layout.sockets.length}`;
      made.append(box("div", "socket", box("p", "label", label), ...parts));
    }
    const far = nodes.length === 1 ? [] : devices(layout, nics, null, null);
    if (far.length) made.append(box("div", "devices", box("span", "label", "near no node:"), ...far));
    if (layout.offline) made.append(box("p", "label", `offline: CPUs ${layout.offline}`));
    return made;
  }

  function legend(styles) {
    const said = { answers: "handles the interrupts of a queue", may: "may handle interrupts, as one of several CPUs", helps: "helps with received packets (RPS)", idle: "no work of the network" };
    const made = box("p", "picture-legend");
    for (const style of Object.keys(said).filter((name) => styles.has(name))) {
      made.append(box("span", "", box("span", `cpu ${style}`, "7"), said[style]));
    }
    return made;
  }

  return ([layout, queueMap]) => {
    const drivers = new Map(layout.nics.map((nic) => [nic.place, nic.driver]));
    const nics = queueMap.map((nic) => ({ ...nic, driver: drivers.get(nic.place) || "" }));
    const online = layout.cores.flatMap(members);
    const states = ["now", "wanted"].map((state) => duties(nics, state));
    const same = JSON.stringify([...states[0]].sort()) === JSON.stringify([...states[1]].sort());
    const panels = box("div", "panels");
    for (const [number, name] of (same ? ["Now"] : ["Now", "After this run"]).entries()) {
      const drawn = machine(layout, nics, states[number]);
      drawn.setAttribute("aria-hidden", "true"); // the sentences below say the same
      panels.append(box("div", "panel", box("p", "panel-name", name), drawn));
    }
    const small = layout.caches.filter((cache) => !cache.shared.length && cache.size).map((cache) => `${cache.name} ${size(cache.size)}`);
    const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
    const facts = [count(layout.sockets.length, "socket"), count(layout.nodes.length, "NUMA node"), count(layout.cores.length, "core"), count(online.length, "online CPU"), ...(small.length ? [`per core ${small.join(", ")}`] : [])];
    const styles = new Set(["idle", ...states.slice(0, same ? 1 : 2).flatMap((state) => [...state.values()].map(([style]) => style))]);
    const said = box("ul", "queues", ...nics.flatMap((nic) => {
      const where = `${nic.name}${nic.node === null ? "" : ` at node ${nic.node}`}`;
      return lines(nic, online).map((line) => box("li", "", box("b", "", where), ` ${line}`));
    }));
    return box("figure", "picture", box("figcaption", "muted", facts.join(", ")), panels, legend(styles), said);
  };
})();
