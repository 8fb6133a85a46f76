// Draws the page's charts from the compressed parts at its end. Names are data: they reach the
// page as text (`textContent`) or escaped (`safe`), never as HTML.
const $ = (id) => document.getElementById(id);
const safe = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const plain = (text) => new DOMParser().parseFromString(text, "text/html").documentElement.textContent;
const GROUPED = new Intl.NumberFormat("en");
const number = (value, digits = 4) =>
  value === null || value === undefined ? "–" : GROUPED.format(Number(value.toPrecision(digits)));

async function unpacked(id) {
  const bytes = Uint8Array.from(atob($(`data-${id}`).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
const kept = new Map(); // the runs that were looked at last
function data(id) {
  if (!kept.has(id)) kept.set(id, unpacked(id).then(JSON.parse));
  if (kept.size > 12) kept.delete(kept.keys().next().value);
  return kept.get(id);
}
const times = ({ tick, by }) => { let at = 0; return by.map((more) => (at += more) * tick); };
const word = ({ words, at }, k) => words[at[k]];

function span(seconds) {
  for (const [size, name, less, minor] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]])
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / less);
      return `${Math.floor(seconds / size)} ${name}` + (rest ? ` ${rest} ${minor}` : "");
    }
  return `${number(seconds, 3)} s`;
}

// ---- looks ----
const PALETTE = ["#2f7fc1", "#d55e00", "#009e73", "#cc79a7", "#d99a00", "#56b4e9", "#8a63c9", "#7a8793", "#a65628", "#5b8c00"];
const SIZES = ["#f2b134", "#ee9140", "#e5714c", "#d5535f", "#bd4177", "#9c3f8f", "#7a47a3", "#5d54b0", "#4456a8"]; // 1 GPU, 2, 4, ...
const DASHES = ["solid", "dash", "dot", "dashdot"];
const colour = (k) => PALETTE[k % PALETTE.length];
const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "toImage"] };

function themed(layout) {
  const css = getComputedStyle(document.documentElement);
  const [ink, soft, rule, page] = ["--ink", "--soft", "--rule", "--page"].map((name) => css.getPropertyValue(name).trim());
  const made = {
    autosize: true, hovermode: "closest", margin: { l: 66, r: 18, t: 24, b: 52 }, height: 420,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, uirevision: "keep",
    ...structuredClone(layout),
    font: { family: "system-ui, sans-serif", size: 13, color: ink }, paper_bgcolor: page, plot_bgcolor: page,
    hoverlabel: { bgcolor: page, bordercolor: rule, font: { color: ink }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
  };
  for (const name of Object.keys(made).filter((key) => /^[xy]axis\d*$/.test(key)))
    made[name] = { gridcolor: rule, zeroline: false, linecolor: rule, automargin: true, ...made[name] };
  for (const shape of made.shapes ?? []) shape.line = { color: soft, ...shape.line };
  return made;
}

let library; // Plotly, once a chart needs it
async function plotly() {
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.append(script);
}

const drawn = new Set();
async function draw(figure, traces, layout, rows) {
  if (!figure.plot) {
    figure.plot = figure.appendChild(document.createElement("div"));
    const tools = figure.appendChild(document.createElement("div"));
    tools.className = "tools";
    for (const kind of ["PNG", "SVG", "CSV"]) {
      const button = tools.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = kind;
      button.title = `Save this chart as ${kind}`;
      button.onclick = () => save(figure, kind);
    }
  }
  await (library ??= plotly());
  figure.again = () => Plotly.react(figure.plot, structuredClone(traces), themed(layout), CONFIG);
  figure.rows = rows ?? (() => seen(traces, layout));
  drawn.add(figure);
  return figure.again();
}

function save(figure, kind) {
  if (kind !== "CSV") {
    const { width, height } = figure.plot.getBoundingClientRect();
    return Plotly.downloadImage(figure.plot, { format: kind.toLowerCase(), width, height, scale: 2, filename: figure.dataset.file });
  }
  const cell = (value) => (/[",\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  const text = figure.rows().map((row) => row.map(cell).join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text + "\r\n"], { type: "text/csv" }));
  link.download = `${figure.dataset.file}.csv`;
  link.click();
}

function seen(traces, layout) { // what a chart shows, as rows
  const errors = ["error_x", "error_y"].filter((name) => traces.some((trace) => trace[name]));
  const head = errors.flatMap((name) => [`${name[6]} plus`, `${name[6]} minus`]);
  const rows = [["series", layout.xaxis.title.text, layout.yaxis.title.text, ...head]];
  for (const trace of traces.filter(({ hoverinfo, fill }) => hoverinfo !== "skip" || fill)) // no mere lines between points
    (trace.x ?? []).forEach((x, k) => {
      const ends = errors.flatMap((name) => {
        const plus = trace[name]?.array?.[k] ?? "";
        return [plus, trace[name]?.arrayminus?.[k] ?? plus];
      });
      rows.push([plain(trace.name ?? ""), x, trace.y[k], ...ends]);
    });
  return rows;
}

// ---- the charts of all runs ----
function dressed({ name, policy, ...trace }) {
  const rest = { ...trace, name: innerWidth < 640 ? name.replace(/([^<&]{22,}?[,( /])/g, "$1<br>") : name }; // long names
  const fill = policy === undefined ? rest.line?.color : colour(policy), dash = DASHES[Math.floor((policy ?? 0) / PALETTE.length) % DASHES.length];
  return {
    ...rest, marker: { color: fill, ...rest.marker }, line: { color: fill, dash, ...rest.line },
    ...(rest.fill ? { fillcolor: fill + Math.round(255 * rest.shade).toString(16).padStart(2, "0") } : {}),
  };
}

async function overviews() { // how each is drawn, by its place
  const charts = await data("charts"), todo = [];
  for (const figure of document.querySelectorAll("figure[data-section]")) {
    const own = charts.filter((chart) => chart.section === figure.dataset.section);
    const box = document.querySelector(`[data-choices="${figure.dataset.section}"]`);
    const select = box.querySelector("select");
    options(select, own.map((chart) => chart.choice));
    box.hidden = own.length < 2;
    const show = () => {
      const chart = own[select.selectedIndex];
      const traces = chart.traces.map(dressed);
      figure.nextElementSibling.textContent = chart.caption;
      const lines = innerWidth < 640 ? traces.reduce((sum, { name }) => sum + name.split("<br>").length, 0) : 2;
      return draw(figure, traces, { ...chart.layout, height: 380 + 20 * lines, uirevision: chart.choice, showlegend: true });
    };
    select.onchange = show;
    todo.push([figure, show]);
  }
  return todo;
}

function options(select, texts, any) {
  select.replaceChildren();
  if (any) select.add(new Option(any, ""));
  texts.forEach((text, k) => select.add(new Option(text || "–", any ? k : text)));
}

// ---- one run ----
const MOST_BARS = 6000;
const FILTERS = ["application", "tenant", "user"];
let index, run; // run: the data of the chosen one

function choose(changed) {
  const [workloads, policies, seeds] = ["run-workload", "run-policy", "run-seed"].map($);
  if (!changed) options(workloads, [...new Set(index.map((each) => each.workload))]);
  const of = index.filter((each) => each.workload === workloads.value);
  fill(policies, of.map((each) => each.label));
  const own = of.filter((each) => each.label === policies.value);
  fill(seeds, own.map((each) => String(each.seed)));
  for (const select of [workloads, seeds]) select.parentElement.hidden = select.options.length < 2;
  return own[Math.max(0, seeds.selectedIndex)];
}
function fill(select, texts) { // keeps what was chosen
  const before = select.value;
  options(select, [...new Set(texts)]);
  if (texts.includes(before)) select.value = before;
}

async function show(changed) {
  const chosen = choose(changed);
  if (!$(`data-${chosen.key}`)) {
    run = undefined;
    $("run-said").textContent = `The charts of ${chosen.label} (seed ${chosen.seed}) are left out to keep the page small; see Method.`;
    for (const id of ["gantt", "rounds", "round-card", "job-card", "beliefs-part"]) $(id).hidden = true;
    return;
  }
  for (const id of ["gantt", "rounds", "round-card"]) $(id).hidden = false;
  const [own, of] = await Promise.all([data(chosen.key), data(chosen.of)]);
  const other = run?.of !== of;
  const { segments: s, rounds } = own;
  run = { ...own, of, chosen, start: times(s.start), resume: times(s.resume), end: times(s.end), now: times(rounds.now), submit: times(of.submit) };
  run.base = of.gpus.reduce((sums, gpus) => [...sums, sums.at(-1) + gpus], [0]);
  [run.unit, run.timeTitle] = own.time;
  if (other) filters();
  $("round").max = Math.max(0, run.now.length - 1);
  await gantt();
  await decisions();
  await beliefs();
  round(Math.min(Number($("round").value), run.now.length - 1));
  card();
}

function filters() {
  const { of } = run;
  for (const name of FILTERS) {
    options($(`f-${name}`), of[name].words, "all");
    $(`f-${name}`).parentElement.hidden = of[name].words.length < 2;
  }
  options($("f-node"), of.nodes, "all");
  const useful = (name) => name === "job" || name === "asked" || of[name].words.length > 1;
  for (const option of $("run-colour").options) option.hidden = !useful(option.value);
  if (!useful($("run-colour").value)) $("run-colour").value = "asked";
  $("f-job").value = "";
}

function matches() { // the jobs that the filters leave, by place
  const { of } = run;
  const part = $("f-job").value.trim().toLowerCase();
  const exact = of.jobs.findIndex((id) => id.toLowerCase() === part);
  return of.jobs.map((id, k) =>
    (!part || (exact >= 0 ? k === exact : id.toLowerCase().includes(part) || word(of.name, k).toLowerCase().includes(part))) &&
    FILTERS.every((name) => $(`f-${name}`).value === "" || of[name].at[k] === Number($(`f-${name}`).value)));
}

function kinds() { // by segment the colour's name, and the names by how often they are
  const { of, segments } = run;
  const by = $("run-colour").value;
  const size = (gpus) => { const top = 2 ** Math.ceil(Math.log2(gpus)); return top < 4 ? `${top} GPU${top > 1 ? "s" : ""}` : `${top / 2 + 1}–${top} GPUs`; };
  const name = (job, k) => by === "job" ? of.jobs[job] : by === "asked" ? size(segments.gpus[k]) : word(of[by], job) || "–";
  const names = segments.job.map(name);
  const count = new Map();
  names.forEach((each) => count.set(each, (count.get(each) ?? 0) + 1));
  const order = [...count.keys()].sort((a, b) => count.get(b) - count.get(a));
  if (by === "asked") {
    const level = (name) => Math.min(SIZES.length - 1, Math.log2(Number(name.match(/\d+(?= GPU)/)[0])));
    order.sort((a, b) => parseFloat(a) - parseFloat(b));
    return { names, order, some: order, fill: (name) => SIZES[level(name)] };
  }
  const some = by === "job" ? [] : order.slice(0, PALETTE.length);
  return { names, order, some, fill: (name) => colour(some.indexOf(name)) };
}

function twins() { // members of an array share the bar of one: its key by segment
  const { segments, start } = run;
  if (!segments.array) return segments.job.map((_, k) => k);
  return segments.job.map((_, k) => (word(segments.array, k) ? `${word(segments.array, k)} ${start[k]}` : k));
}

function about(k, bar) { // the hover text of a bar
  const { of, segments, start, resume, end, bars } = run;
  const job = segments.job[k];
  const lines = [
    `<b>${safe(of.jobs[job])}</b>${word(of.name, job) ? ` ${safe(word(of.name, job))}` : ""}`,
    `${safe(word(of.application, job))}${word(of.user, job) ? `, ${safe(word(of.user, job))}` : ""}`,
    `${bars.lanes[bar]} of its ${segments.gpus[k]} GPUs on node ${safe(of.nodes[bars.node[bar]])}`,
    `for ${span(end[k] - start[k])}, from ${span(start[k])} to ${span(end[k])}`,
  ];
  if (resume[k] > start[k]) lines.push(`of these ${span(resume[k] - start[k])} starting or restarting`);
  const how = [`batch ${number(segments.batch[k])}`];
  if (segments.clock[k] < 1) how.push(`clock ${number(segments.clock[k])}`);
  if (segments.power[k]) how.push(`${number(segments.power[k])} W`);
  lines.push(how.join(", "));
  if (segments.array && word(segments.array, k)) lines.push("in an array with other jobs");
  return lines.join("<br>");
}

async function gantt(from = 0, to = Infinity) {
  const { segments, start, resume, end, bars, base, unit, over_time } = run;
  const left = matches(), keys = twins(), node = $("f-node").value;
  const shown = new Set(segments.job.flatMap((job, k) => (left[job] ? [keys[k]] : [])));
  let some = bars.segment.map((_, k) => k).filter((k) => end[bars.segment[k]] > from && start[bars.segment[k]] < to);
  const all = some.length;
  const lasts = (k) => end[bars.segment[k]] - start[bars.segment[k]];
  if (all > MOST_BARS) some = some.sort((a, b) => lasts(b) - lasts(a)).slice(0, MOST_BARS);
  const { names, order, some: coloured, fill: fillOf } = kinds();
  const groups = new Map();
  for (const k of some) {
    const s = bars.segment[k];
    const fits = shown.has(keys[s]) && (node === "" || bars.node[k] === Number(node));
    const place = order.indexOf(names[s]);
    const name = !fits ? "others" : $("run-colour").value === "job" ? PALETTE[place % PALETTE.length] : coloured.includes(names[s]) ? names[s] : "more";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(k);
  }
  const middle = (k) => base[bars.node[k]] + bars.lane[k] + bars.lanes[k] / 2;
  const bar = (name, ks, fill, first, last, text, more) => ({
    type: "bar", orientation: "h", name, base: ks.map((k) => first(k) / unit), x: ks.map((k) => (last(k) - first(k)) / unit),
    y: ks.map(middle), width: ks.map((k) => bars.lanes[k] - 0.1), marker: { color: fill, line: { width: 0 } },
    hovertext: text && ks.map(text), hovertemplate: text ? "%{hovertext}<extra></extra>" : undefined, hoverinfo: text ? undefined : "skip", customdata: ks, ...more,
  });
  const [begin, resumed, stop] = [start, resume, end].map((column) => (k) => column[bars.segment[k]]);
  const [panels, layout] = over_time.chart, traces = panels.map(dressed);
  if (groups.has("others")) traces.push(bar("filtered out", groups.get("others"), "rgba(140,150,160,.25)", begin, stop));
  for (const name of [...coloured, "more", ...PALETTE]) if (groups.has(name)) {
    const fill = name === "more" ? "#8c8c8c" : name.startsWith("#") ? name : fillOf(name);
    traces.push(bar(safe(name), groups.get(name), fill, begin, stop, (k) => about(bars.segment[k], k), { showlegend: !name.startsWith("#") }));
  }
  const paused = some.filter((k) => resumed(k) > begin(k) && shown.has(keys[bars.segment[k]]));
  if (paused.length) traces.push(bar("starting or restarting", paused, "rgba(20,24,29,.5)", begin, resumed));
  await draw($("gantt"), traces, {
    ...layout, barmode: "overlay", bargap: 0, uirevision: run.chosen.workload, legend: { orientation: "h", y: 1.01, yanchor: "bottom", x: 0, font: { size: 11 } }, shapes: mark(),
  }, rows);
  once($("gantt").plot);
  const picked = left.filter(Boolean).length;
  $("run-said").textContent = `${run.chosen.label}: ${picked === left.length ? "all" : `${picked} of`} ${number(left.length, 9)} jobs` +
    (run.chosen.mean_jct_s ? `, mean JCT ${number(run.chosen.mean_jct_s)} s` : "") + (over_time.most_w ? `, at most ${number(over_time.most_w / 1000)} kW` : "") + ".";
  const means = over_time.means_s;
  $("gantt-note").textContent = "A row is a GPU, rows of a node stand together; a bar is a job that holds GPUs there (which GPUs of a node is chosen for the eye: a schedule says how many). " +
    "Drag to zoom, double-click for all of it, hover for details, click a bar for its job. The zoom stays when the policy changes." +
    (all > MOST_BARS ? ` The ${number(MOST_BARS, 9)} longest of ${number(all, 9)} bars in view are drawn; zoom in for the short ones.` : "") +
    (means ? ` Below: means over ${span(means)}; the peak of watts is given above.` : "");
}

function rows() {
  const { of, segments, start, resume, end, bars } = run;
  return [["job", "application", "tenant", "user", "node", "first_gpu", "gpus_here", "gpus", "start_s", "resume_s", "end_s", "clock", "batch", "power_w"],
    ...bars.segment.map((s, k) => { const job = segments.job[s];
      return [of.jobs[job], word(of.application, job), word(of.tenant, job), word(of.user, job), of.nodes[bars.node[k]], bars.lane[k], bars.lanes[k],
        segments.gpus[s], start[s], resume[s], end[s], segments.clock[s], segments.batch[s], segments.power[s]]; })];
}

function once(plot) { // listens to a chart that is drawn for the first time
  if (plot.listens) return;
  plot.listens = true;
  let wait;
  plot.on("plotly_relayout", (change) => {
    if (!run || run.bars.segment.length <= MOST_BARS || !Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
    clearTimeout(wait);
    wait = setTimeout(() => gantt(...plot.layout.xaxis.range.map((x) => x * run.unit)), 150);
  });
  plot.on("plotly_click", ({ points }) => {
    const bar = points[0]?.customdata;
    if (typeof bar !== "number") return;
    $("f-job").value = run.of.jobs[run.segments.job[run.bars.segment[bar]]];
    filter();
  });
}

function filter() { gantt(); card(); }

function list(box, pairs) {
  const made = document.createElement("dl");
  for (const [name, text] of pairs.filter(([, text]) => text !== "" && text !== undefined)) {
    made.appendChild(document.createElement("dt")).textContent = name;
    made.appendChild(document.createElement("dd")).textContent = text;
  }
  box.appendChild(made);
}

function card() { // of the job, if the filter leaves one
  const box = $("job-card"), left = matches();
  const only = left.indexOf(true);
  box.hidden = only < 0 || left.filter(Boolean).length > 1;
  if (box.hidden) return;
  const { of, segments, start, end } = run;
  const own = segments.job.flatMap((job, k) => (job === only ? [k] : []));
  const done = run.ends[only];
  box.replaceChildren();
  box.appendChild(document.createElement("strong")).textContent = `Job ${of.jobs[only]}`;
  list(box, [
    ["name", word(of.name, only)], ["application", word(of.application, only)], ["tenant", word(of.tenant, only)], ["user", word(of.user, only)],
    ["asked for", `${of.asked[only]} GPUs`], ["submitted", `after ${span(run.submit[only])}`],
    ["first ran", own.length ? `after ${span(start[own[0]] - run.submit[only])} of waiting` : "never"],
    ["ended", done === null ? "not in this run" : `${run.fate[only]}, JCT ${span(done - run.submit[only])}`],
    ["deadline", of.deadline[only] === null ? "" : `${span(of.deadline[only])}${done === null ? "" : done <= of.deadline[only] ? ", kept" : ", missed"}`],
    ["GPU-hours", number(own.reduce((sum, k) => sum + segments.gpus[k] * (end[k] - start[k]), 0) / 3600)],
    ["held", own.slice(0, 30).map((k) => `${segments.gpus[k]} GPUs from ${span(start[k])} to ${span(end[k])}`).join("; ") + (own.length > 30 ? `; ${own.length - 30} more` : "")],
    ["failures", run.failures.filter(([, job]) => job === of.jobs[only]).map(([when, , , lost]) => `after ${span(when)}, ${span(lost)} lost`).join("; ")],
  ]);
}

// ---- rounds ----
async function decisions() {
  const { now, rounds, unit } = run;
  const over = new Set(rounds.overrun);
  const group = (name, ks, fill) => ({ type: "scatter", mode: "markers", name, x: ks.map((k) => now[k] / unit), y: ks.map((k) => Math.max(rounds.solve[k] * 1e3, 1e-3)), customdata: ks,
    marker: { size: 5, color: fill, opacity: 0.7 }, hovertemplate: `round %{customdata}: %{y:.3g} ms<extra>${name}</extra>` });
  const every = now.map((_, k) => k);
  const traces = [
    group("proven best", every.filter((k) => !over.has(k) && word(rounds.status, k) === "optimal"), colour(2)),
    group("by a rule, or not proven", every.filter((k) => !over.has(k) && word(rounds.status, k) === "feasible"), colour(0)),
    group("fallback, or none", every.filter((k) => !over.has(k) && !["optimal", "feasible"].includes(word(rounds.status, k))), colour(4)),
    group("over its time limit", [...over], "#c0392b"),
  ].filter((trace) => trace.x.length);
  const layout = { height: 260, xaxis: { title: { text: run.timeTitle } }, yaxis: { type: "log", title: { text: "decision (ms)" } }, uirevision: run.chosen.key, showlegend: true, margin: { l: 66, r: 18, t: 10, b: 46 } };
  await draw($("rounds"), traces, layout, roundRows);
  if (!$("rounds").plot.listens) {
    $("rounds").plot.listens = true;
    $("rounds").plot.on("plotly_click", ({ points }) => round(points[0].customdata));
  }
}

function roundRows() {
  const { now, rounds } = run;
  const columns = ["waiting", "running", "started", "stopped", "changed", "objective", "bound", "gap", "solve", "overhead", "power"];
  return [["now_s", ...columns.map((name) => ({ solve: "solve_s", overhead: "overhead_s", power: "power_w" })[name] ?? name), "stop", "status"],
    ...now.map((at, k) => [at, ...columns.map((name) => rounds[name][k]), word(rounds.stop, k), word(rounds.status, k)])];
}

function mark() { // where the chosen round is in the chart of the run
  const at = run.now[Number($("round").value)], shapes = run.over_time.chart[1].shapes ?? [];
  return at === undefined ? shapes : [...shapes, { type: "line", yref: "paper", x0: at / run.unit, x1: at / run.unit, y0: 0, y1: 1, line: { width: 1, dash: "dot" } }];
}

function round(k) {
  const box = $("round-card");
  box.replaceChildren();
  if (!run || !(k >= 0)) return void (box.textContent = "This run made no decision.");
  $("round").value = k;
  const { of, now, rounds, segments, start, end, ends, submit } = run;
  const at = now[k], near = (t) => t !== null && Math.abs(t - at) <= 1.5 * segments.start.tick;
  const names = (jobs, most = 14) => {
    const every = [...jobs];
    return every.length ? every.slice(0, most).map((job) => of.jobs[job]).join(", ") + (every.length > most ? ` and ${every.length - most} more` : "") : "none";
  };
  const begun = new Set(), left = new Set(), holds = new Set();
  segments.job.forEach((job, s) => {
    if (near(start[s])) begun.add(job);
    if (near(end[s])) left.add(job);
    if (start[s] <= at && end[s] > at && !near(end[s])) holds.add(job);
  });
  begun.forEach((job) => holds.add(job));
  const over = (job) => ends[job] !== null && (near(ends[job]) || ends[job] < at);
  const changed = new Set([...begun].filter((job) => left.has(job)));
  const waits = of.jobs.map((_, job) => job).filter((job) => submit[job] <= at && !holds.has(job) && !over(job));
  const prices = [];
  for (let p = 0; p < rounds.prices[k].length; p += 2) prices.push(`${rounds.resources[rounds.prices[k][p]]}: ${number(rounds.prices[k][p + 1])}`);
  const more = rounds.more[k] ?? {};
  box.appendChild(document.createElement("strong")).textContent = `Round ${k} of ${now.length - 1}, after ${span(at)}`;
  list(box, [
    ["State before", `${rounds.running[k]} jobs ran, ${rounds.waiting[k]} waited`],
    ["Plan", `${rounds.started[k]} started or resumed, ${rounds.changed[k]} changed, ${rounds.stopped[k]} stopped; the cluster draws ${number(rounds.power[k])} W after it`],
    ["Started or resumed", names([...begun].filter((job) => !left.has(job)))],
    ["Changed", names(changed)],
    ["Stopped", names([...left].filter((job) => !begun.has(job) && !over(job)))],
    ["Completed at this time", names(ends.flatMap((end, job) => (near(end) ? [job] : [])))],
    ["Run after it", names(holds)],
    ["Wait after it", names(waits)],
    ["Why", why(k)],
    ["Prices (worth of one more)", prices.length ? prices.join("; ") : "none: this policy has no prices, or nothing is scarce"],
    ["Time", `${number(rounds.solve[k] * 1e3, 3)} ms to decide${rounds.overrun.includes(k) ? ", over its limit" : ""}; ${number(rounds.overhead[k] * 1e3, 3)} ms for the driver`],
    ["Clock lowered by the driver", more.slowed_jobs?.join(", ")],
    ["Stopped by the driver", more.stopped_jobs?.join(", ")],
    ["Clock given back by the driver", more.restored_jobs?.join(", ")],
    ["Kept by the driver", more.pinned_jobs?.join(", ")],
    ["Plan refused for", more.violations?.join("; ")],
  ]);
  if (!$("gantt").hidden) Plotly.relayout($("gantt").plot, { shapes: themed({ shapes: mark() }).shapes });
}

function why(k) {
  const { rounds } = run;
  const words = { complete: "it had nothing more to do", gap: "the gap that was asked for was reached", time_limit: "its time was up", node_limit: "its nodes were used up",
    generation_limit: "its generations were over", stagnation: "its search no longer improved", infeasible: "no plan keeps all limits", error: "it failed" };
  const status = { optimal: "proven best", feasible: "keeps every limit", fallback: "what ran goes on, as the solver had nothing", none: "no plan" };
  const said = [`${status[word(rounds.status, k)] ?? word(rounds.status, k)}; it stopped as ${words[word(rounds.stop, k)] ?? word(rounds.stop, k)}`];
  if (rounds.objective[k] !== null) said.push(`worth ${number(rounds.objective[k])}`);
  if (rounds.bound[k] !== null) said.push(`no plan is worth more than ${number(rounds.bound[k])}${rounds.gap[k] === null ? "" : ` (gap ${number(100 * rounds.gap[k], 2)} %)`}`);
  return said.join("; ");
}

function beliefs() {
  $("beliefs-part").hidden = !run.beliefs;
  if (!run.beliefs) return;
  const [traces, layout] = run.beliefs;
  return draw($("beliefs"), traces.map(dressed), { ...layout, height: 340, showlegend: false, uirevision: run.chosen.key });
}

// ---- the page ----
function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", dark);
  for (const figure of drawn) figure.again();
}

async function tables() {
  const url = URL.createObjectURL(new Blob([await unpacked("datatables")], { type: "text/javascript" }));
  const { default: DataTable } = await import(url);
  for (const table of document.querySelectorAll("table.data")) {
    const many = table.tBodies[0].rows.length > 10, wide = table.tHead.rows[0].cells.length > 6;
    const buttons = [...(wide ? [{ extend: "colvis", text: "Columns" }] : []), { extend: "csvHtml5", text: "CSV", title: null }, { extend: "copyHtml5", text: "Copy" }];
    const made = new DataTable(table, { order: [], paging: many, pageLength: 25, info: many, autoWidth: false,
      layout: { topStart: { buttons }, topEnd: table.tBodies[0].rows.length > 3 ? "search" : null, bottomStart: many ? "info" : null, bottomEnd: many ? "paging" : null } });
    const box = document.createElement("div"); // only the table itself scrolls sideways
    box.className = "wide";
    table.replaceWith(box);
    box.append(table);
    new ResizeObserver(() => box.classList.toggle("cut", box.scrollWidth > box.clientWidth + 1)).observe(box);
    made.table().container().parentElement.classList.remove("wide");
  }
}

async function start() {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  prefers.addEventListener("change", () => theme(prefers.matches));
  $("theme").onclick = () => theme(!document.documentElement.classList.contains("dark"));
  theme(prefers.matches);
  await tables();
  const todo = await overviews();
  index = await data("runs");
  if (index.length && $("run")) todo.push([$("run"), firstRun]);
  await inTurn(todo);
}

async function firstRun() {
  await show(false);
  for (const id of ["run-workload", "run-policy", "run-seed"]) $(id).onchange = () => show(true);
  $("run-colour").onchange = () => gantt();
  let wait;
  $("f-job").oninput = () => { clearTimeout(wait); wait = setTimeout(filter, 200); };
  for (const name of [...FILTERS, "node"]) $(`f-${name}`).onchange = filter;
  $("f-clear").onclick = () => { for (const name of [...FILTERS, "node", "job"]) $(`f-${name}`).value = ""; filter(); };
  $("round").oninput = () => round(Number($("round").value));
  $("round-back").onclick = () => round(Math.max(0, Number($("round").value) - 1));
  $("round-on").onclick = () => round(Math.min(run.now.length - 1, Number($("round").value) + 1));
}

async function inTurn(todo) { // what is in view first; then the page is ready, and the rest follows
  const inView = ([box]) => box.getBoundingClientRect().top < innerHeight && box.getBoundingClientRect().bottom > 0;
  while (todo.length) {
    let at = todo.findIndex(inView);
    if (at < 0) {
      document.body.dataset.ready = "yes";
      await new Promise((over) => setTimeout(over, 100));
      at = Math.max(0, todo.findIndex(inView));
    }
    const [[, task]] = todo.splice(at, 1);
    await task();
  }
  document.body.dataset.ready = "all";
}

start().catch((error) => {
  $("broken").hidden = false;
  $("broken").textContent = `The charts cannot be drawn here (${error.message}). The tables can be read; a current browser draws the charts.`;
  console.error(error);
});
