"use strict";
(() => {
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;

  // Light and dark: the system's choice until the reader makes one.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => {
    theme.setAttribute("aria-pressed", String(isDark()));
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  // Tables: a click on a title sorts, a second click turns the order. Empty cells stay last.
  const compare = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.key;
    if (number !== undefined) return Number(number);
    const text = cell.textContent.trim();
    return text === "" || text === "–" ? null : text;
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : compare(a, b));
  const sortBy = (button) => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    $$("th[aria-sort]", head.parentElement).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of button.closest("table").tBodies) {
      const rows = $$("tr:not(.part)", body).map((row) => [keyOf(row, column), row]);
      const known = rows.filter(([key]) => key !== null);
      const rest = rows.filter(([key]) => key === null);
      known.sort(([a], [b]) => (down ? order(b, a) : order(a, b)));
      body.append(...[...known, ...rest].map(([, row]) => row));
    }
  };
  $$("thead button").forEach((button) => {
    button.addEventListener("click", () => sortBy(button));
  });
  $$(".filter input").forEach((input) => {
    const block = input.closest(".table-block");
    const rows = $$("tbody tr:not(.part)", block);
    const count = block.querySelector(".count");
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let kept = 0;
      rows.forEach((row) => {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        kept += row.hidden ? 0 : 1;
      });
      count.textContent = wanted === "" ? "" : `${kept} of ${rows.length}`;
    });
  });

  // Hover text: plain text only, beside the pointer and inside the window.
  const tip = document.getElementById("tip");
  const showTip = (_, event, __, value) => {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    const list = document.createElement("dl");
    for (const [name, text] of Object.entries(value)) {
      if (text === null || text === "null" || text === "") continue;
      const term = document.createElement("dt");
      const detail = document.createElement("dd");
      term.textContent = name;
      detail.textContent = String(text);
      list.append(term, detail);
    }
    tip.replaceChildren(list);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const above = event.clientY - height - 14;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above < 8 ? event.clientY + 18 : above}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  addEventListener("scroll", hideTip, { passive: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  // Keys: what a pointer reads of a figure that has the focus, arrows read mark by mark.
  const read = document.getElementById("read");
  const STEPS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  const marksOf = (plot) => {
    const byRow = plot.dataset.rows === "true";
    const key = ({ x, y }) => (byRow ? [y, x] : [x, y]);
    return $$("[class*='mark-symbol'] > *", plot)
      .filter((mark) => mark.__data__?.tooltip)
      .map((mark) => ({ mark, at: key(mark.getBoundingClientRect()) }))
      .sort((a, b) => a.at[0] - b.at[0] || a.at[1] - b.at[1])
      .map(({ mark }) => mark);
  };
  const unlight = (plot) => {
    $$("[data-lit]", plot).forEach((mark) => {
      mark.setAttribute("opacity", "0");
      delete mark.dataset.lit;
    });
  };
  const step = (plot, by) => {
    const marks = marksOf(plot);
    if (!marks.length) return;
    const place = Number(plot.dataset.place ?? (by < 0 ? marks.length : -1)) + by;
    const mark = marks[Math.min(Math.max(place, 0), marks.length - 1)];
    plot.dataset.place = String(marks.indexOf(mark));
    unlight(plot);
    mark.setAttribute("opacity", "1");
    mark.dataset.lit = "true";
    const { left, top, width, height } = mark.getBoundingClientRect();
    const told = mark.__data__.tooltip;
    showTip(null, { clientX: left + width / 2, clientY: top + height / 2 }, null, told);
    read.textContent = Object.entries(told)
      .filter(([, text]) => text !== null && text !== "")
      .map(([name, text]) => `${name} ${text}`).join(", ");
  };
  const withKeys = (plot) => {
    plot.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      step(plot, STEPS[event.key]);
    });
    plot.addEventListener("blur", () => { hideTip(); unlight(plot); read.textContent = ""; });
  };

  // Figures: drawn by Vega through its interpreter, so that no text is ever run as code. Vega and
  // the figures are packed; the page's policy lets Vega run because it knows its hash.
  const unpack = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(plain).text();
  };
  const plots = document.getElementById("library") ? $$(".plot") : [];
  plots.forEach(withKeys);
  const prepare = async () => {
    const script = document.createElement("script");
    script.textContent = await unpack("library");
    document.head.append(script);
  };
  const prepared = plots.length ? prepare() : null;
  const refuse = () => Promise.reject(new Error("this page loads nothing"));
  const loader = { load: refuse, sanitize: refuse, http: refuse, file: refuse };
  // On a phone the names of rows take two lines where they have two parts.
  const phone = matchMedia("(max-width: 36rem)");
  const fit = (spec) => {
    const rows = spec.layer.map((layer) => layer.encoding.y).find((y) => y?.type === "ordinal");
    if (!rows || !phone.matches) return spec;
    const look = { labelLimit: 120, labelExpr: "slice(split(datum.label, ', '), 0, 2)", labelFontSize: 11 };
    for (const { encoding } of spec.layer) {
      if (encoding.y?.axis) Object.assign(encoding.y.axis, look);
    }
    if (rows.scale.domain.some((name) => name.includes(", "))) {
      spec.height = Math.max(spec.height, 34 * rows.scale.domain.length + 10);
    }
    return spec;
  };
  // What is folded has no width yet: it is drawn at this one, and again once it is seen.
  const UNSEEN = 560;
  // Pixels past which a figure has more rows than fit a third of a printed page.
  const TALL = 450;
  const draw = async (plot) => {
    const seen = plot.clientWidth > 0;
    plot.dataset.seen = String(seen);
    delete plot.dataset.place;
    plot.classList.remove("drawn");
    try {
      await prepared;
      const spec = fit(JSON.parse(await unpack(plot.dataset.spec)));
      if (plot.dataset.seen !== String(seen)) return;
      if (!seen) spec.width = UNSEEN;
      // Vega names the element that it draws into after itself: the figure's own name stays outside.
      const canvas = document.createElement("div");
      canvas.setAttribute("aria-hidden", "true");
      plot.replaceChildren(canvas);
      await vegaEmbed(canvas, spec, {
        actions: false,
        ast: true,
        defaultStyle: false,
        loader,
        renderer: "svg",
        tooltip: showTip,
      });
      plot.dataset.rows = String(spec.layer.some(({ encoding }) => encoding.y?.type === "ordinal"));
      plot.classList.toggle("tall", plot.querySelector("svg").height.baseVal.value > TALL);
      plot.tabIndex = 0;
      plot.setAttribute("aria-describedby", "keys");
      plot.classList.add("drawn");
    } catch (error) {
      plot.textContent = "This figure could not be drawn; its data follow.";
      console.error(error);
    }
  };
  const drawShown = () =>
    Promise.all(plots.filter((plot) => plot.dataset.seen !== "true" && plot.clientWidth > 0).map(draw));

  // Switches: of several options one is shown. Without this code all of them are.
  $$(".switch").forEach((choice) => {
    const inputs = $$("input", choice);
    const show = () => {
      for (const input of inputs) document.getElementById(input.value).hidden = !input.checked;
    };
    choice.addEventListener("change", () => { show(); drawShown(); });
    show();
  });

  // Folds: opened by hand, or by a link to what they hold. Print shows them as they are.
  document.addEventListener("toggle", drawShown, true);
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    const whole = target?.querySelector(":scope > details.whole");
    if (whole) whole.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  drawShown().then(() => {
    root.classList.add("ready");
    if (location.hash) reveal();
    const rest = plots.filter((plot) => plot.dataset.seen === undefined);
    const next = () => {
      const plot = rest.shift();
      if (!plot) root.classList.add("complete");
      else if (plot.dataset.seen !== undefined) next();
      else draw(plot).then(() => setTimeout(next));
    };
    next();
  });
  phone.addEventListener("change", () => plots.forEach((plot) => { delete plot.dataset.seen; }) || drawShown());

  // The command: copied, or marked for copying where the browser forbids it.
  const copy = document.getElementById("copy");
  if (copy) {
    const told = document.getElementById("copied");
    const command = document.getElementById("command");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        told.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command);
        told.textContent = "Selected: press Ctrl+C";
      }
    });
  }
})();
