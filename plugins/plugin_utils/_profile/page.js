// SPDX-License-Identifier: GPL-3.0-or-later
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg", ROW = 18, LETTER = 6.7, MOST_ROWS = 200;
  const data = JSON.parse(document.getElementById("data").textContent);
  const { names, depth, name } = data, count = depth.length;
  const by = id => document.getElementById(id);
  const picture = by("icicle"), says = by("says"), search = by("search"), found = by("found");

  // Places are in the order in which callers come before what they call: end[i] is the first place outside of i.
  const caller = new Int32Array(count), end = new Int32Array(count);
  const shares = data.own.map(own => {
    const shares = Float64Array.from(own), whole = shares.reduce((sum, each) => sum + each, 0) || 1;
    return shares.map(share => share / whole);
  });
  const above = [];
  for (let place = 0; place < count; place++) {
    while (above.length > depth[place]) end[above.pop()] = place;
    caller[place] = above.length ? above[above.length - 1] : -1;
    above.push(place);
  }
  for (const place of above) end[place] = count;
  for (const share of shares) {
    for (let place = count - 1; place >= 0; place--) if (caller[place] >= 0) share[caller[place]] += share[place];
  }
  const moved = new Map(data.moved.map(([number, ...rest]) => [number, rest])); // name → 1 more or -1 less, evidence
  const views = [...shares];
  if (shares.length === 2) views.push(shares[0].map((share, place) => (share + shares[1][place]) / 2));

  let view = views.length - 1, zoom = -1, current = -1, wanted = "", hits = null, drawn = new Map();

  const called = place => {
    const places = [], last = place < 0 ? count : end[place];
    for (let each = place + 1; each < last; each = end[each]) places.push(each);
    return places;
  };
  const shareOf = place => place < 0 ? 1 : views[view][place];
  const label = place => place < 0 ? "all" : names[name[place]];
  const percent = share => (100 * share).toFixed(share < 0.001 ? 3 : 1) + " %";
  const isDifference = () => view === 2;

  function look(place) {
    if (place < 0) return "p";
    if (isDifference()) return moved.has(name[place]) ? (moved.get(name[place])[0] > 0 ? "more" : "less") : "still";
    const text = label(place);
    return depth[place] === 0 ? "p" : text.endsWith("_[k]") ? "k" : text.endsWith("_[j]") || text === "[jit]" ? "j" : "u";
  }

  function frame(place, x, y, width, isAbove) {
    const group = document.createElementNS(SVG, "g"), box = document.createElementNS(SVG, "rect");
    box.setAttribute("class", look(place));
    for (const [key, value] of [["x", x], ["y", y], ["width", width], ["height", ROW - 1]]) box.setAttribute(key, value.toFixed(2));
    group.append(box);
    const letters = Math.floor((width - 6) / LETTER), mark = look(place) === "more" ? "▲ " : look(place) === "less" ? "▼ " : "";
    if (letters > 2) {
      const text = document.createElementNS(SVG, "text"), full = mark + label(place);
      text.setAttribute("x", (x + 3).toFixed(2));
      text.setAttribute("y", y + 12);
      text.textContent = full.length > letters ? full.slice(0, letters - 1) + "…" : full;
      group.append(text);
    }
    const isHit = hits && place >= 0 && hits.has(name[place]);
    group.setAttribute("class", [isAbove && "above", isHit ? "hit" : hits && "dim", place === current && "current"].filter(Boolean).join(" "));
    group.place = place;
    drawn.set(place, group);
    return group;
  }

  function draw() {
    const width = Math.max(picture.clientWidth || picture.parentNode.clientWidth, 200), whole = shareOf(zoom) || 1;
    drawn = new Map();
    const groups = [], path = [];
    for (let place = zoom; place >= 0; place = caller[place]) path.unshift(place);
    path.unshift(-1);
    path.forEach((place, row) => groups.push(frame(place, 0, row * ROW, width, place !== zoom)));
    let rows = path.length;
    const left = [[zoom, 0, path.length]];
    while (left.length) {
      let [place, x, row] = left.pop();
      if (row >= MOST_ROWS) continue;
      for (const below of called(place)) {
        const wide = shareOf(below) / whole * width;
        if (wide >= 1) {
          groups.push(frame(below, x, row * ROW, wide, false));
          left.push([below, x, row + 1]);
          rows = Math.max(rows, row + 1);
        }
        x += wide;
      }
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${rows * ROW}`);
    picture.replaceChildren(...groups);
    if (!drawn.has(current)) current = zoom;
  }

  function tell(place) {
    const text = [label(place), percent(shareOf(place)) + " of all samples"];
    if (isDifference() && place >= 0) {
      text[1] = `${data.titles[0]} ${percent(shares[0][place])}, ${data.titles[1]} ${percent(shares[1][place])}`;
      text.push(moved.has(name[place]) ? "evidence " + moved.get(name[place])[1] : "no evidence that its share differs");
    } else if (zoom >= 0 && place >= 0) text.push(percent(shareOf(place) / (shareOf(zoom) || 1)) + " of what is magnified");
    says.textContent = text.join("; ");
  }

  function go(place) {
    if (drawn.has(current)) drawn.get(current).classList.remove("current");
    current = place;
    if (drawn.has(place)) drawn.get(place).classList.add("current");
    tell(place);
  }

  function magnify(place) {
    zoom = current = place;
    draw();
    tell(place);
  }

  function find() {
    wanted = search.value.trim().toLowerCase();
    hits = wanted ? new Set(names.map((text, number) => text.toLowerCase().includes(wanted) ? number : -1)) : null;
    let share = 0;
    if (hits) for (let place = 0; place < count; place++) {
      if (hits.has(name[place])) {
        share += shareOf(place);
        place = end[place] - 1;
      }
    }
    const functions = hits ? [...hits].filter(number => number >= 0).length : 0;
    found.textContent = hits ? `${functions} function${functions === 1 ? "" : "s"}, in ${percent(share)} of the samples` : "";
    draw();
  }

  const beside = step => {
    if (current < 0) return current;
    const all = called(caller[current]).filter(place => drawn.has(place));
    return all[all.indexOf(current) + step] ?? current;
  };
  const KEYS = {
    ArrowUp: () => go(current < 0 ? -1 : caller[current]),
    ArrowDown: () => go(called(current).filter(place => drawn.has(place)).sort((a, b) => shareOf(b) - shareOf(a))[0] ?? current),
    ArrowLeft: () => go(beside(-1)),
    ArrowRight: () => go(beside(1)),
    Enter: () => magnify(current),
    Escape: () => magnify(-1),
  };
  picture.addEventListener("keydown", event => {
    if (event.key in KEYS && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && event.target !== search) {
      event.preventDefault();
      search.focus();
    }
  });
  const placeOf = event => event.target.closest("g")?.place;
  picture.addEventListener("mousemove", event => placeOf(event) === undefined || tell(placeOf(event)));
  picture.addEventListener("click", event => placeOf(event) === undefined || magnify(placeOf(event)));
  search.addEventListener("input", find);
  by("whole").addEventListener("click", () => magnify(-1));
  search.form.addEventListener("submit", event => event.preventDefault());
  search.form.addEventListener("change", event => {
    if (event.target.name === "view") {
      view = Number(event.target.value);
      find();
      tell(current);
    }
  });
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 100);
  });
  draw();
  tell(-1);
})();
