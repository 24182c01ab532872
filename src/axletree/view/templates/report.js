"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);

  // Filter boxes: show the rows that contain every word typed.
  for (const box of all("[data-filter]")) {
    const target = document.getElementById(box.dataset.filter);
    const rows = all("tbody tr, [data-row]", target).map((row) => [row, row.textContent.toLowerCase()]);
    const count = one("output", box.closest(".filter"));
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const [row, text] of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
  }

  // Sortable tables: a click sorts, a second one turns the order round.
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("number");
        const last = head.getAttribute("aria-sort");
        const order = last ? (last === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
        for (const other of all("th", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const value = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
        const compare = numeric ? (a, b) => Number(value(a)) - Number(value(b))
          : (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
        const body = table.tBodies[0];
        const rows = [...body.rows].sort(compare);
        body.append(...(order === "descending" ? rows.reverse() : rows));
      });
    });
  }

  // Copy buttons; where there is no clipboard, the text is selected instead.
  for (const button of all(".copy")) {
    const text = one("code", button.parentElement);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      } catch {
        getSelection().selectAllChildren(text);
      }
    });
  }

  // Timeline: what a stage needs and what needs it.
  const gantt = one(".gantt");
  if (gantt) {
    const links = one(".links", gantt);
    const info = document.getElementById("stage-info");
    const bars = new Map(all(".stage", gantt).map((bar) => [bar.dataset.stage, bar]));
    const labels = new Map(all("[data-label]", gantt).map((label) => [label.dataset.label, label]));
    const needs = new Map([...bars].map(([id, bar]) => [id, bar.dataset.needs.split(" ").filter((need) => bars.has(need))]));
    const users = new Map([...bars.keys()].map((id) => [id, []]));
    for (const [id, list] of needs) for (const need of list) users.get(need).push(id);
    const box = (id) => one(".bar", bars.get(id)).getBoundingClientRect();

    const link = (from, to) => {
      const origin = gantt.getBoundingClientRect();
      const a = box(from), b = box(to);
      const x1 = a.right - origin.left, y1 = a.top + a.height / 2 - origin.top;
      const x2 = b.left - origin.left, y2 = b.top + b.height / 2 - origin.top;
      const bend = Math.max(12, Math.abs(x2 - x1) / 2);
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`);
      links.append(path);
    };
    const clear = () => {
      gantt.classList.remove("pointing");
      links.replaceChildren();
      for (const near of all(".near", gantt)) near.classList.remove("near");
    };
    const show = (id) => {
      clear();
      gantt.classList.add("pointing");
      const near = [id, ...needs.get(id), ...users.get(id)];
      for (const other of near) {
        bars.get(other).classList.add("near");
        labels.get(other)?.classList.add("near");
      }
      for (const need of needs.get(id)) link(need, id);
      for (const user of users.get(id)) link(id, user);
      info.textContent = one("title", bars.get(id)).textContent;
    };
    for (const [id, bar] of bars) {
      bar.addEventListener("pointerenter", () => show(id));
      bar.addEventListener("focus", () => show(id));
      bar.addEventListener("click", () => show(id));
      bar.addEventListener("blur", clear);
    }
    gantt.addEventListener("pointerleave", clear);
  }

  // Paper has no folds.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });
})();
