/* chart.js - outstanding memory over time, and the range of time that is chosen on it */
const SVG = "http://www.w3.org/2000/svg";
const chart = {width: 0, height: 150, left: 64, bottom: 20, top: 6, drag: null, wish: null};

function svg(name, attributes, parent) {
	const made = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
	if (parent) parent.appendChild(made);
	return made;
}

/* About @count round steps up to @most. */
function ticks(most, count, base) {
	if (!(most > 0)) return [0];
	const power = Math.pow(base, Math.floor(Math.log(most / count) / Math.log(base)));
	const step = (base === 10 ? [1, 2, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
		.map(factor => factor * power).find(step => most / step <= count);
	const all = [];
	for (let at = 0; at <= most * 1.0001; at += step) all.push(at);
	return all;
}

const chart_end = () => until[slices - 1] || 1;
const chart_x = s => chart.left + s / chart_end() * (chart.width - chart.left - 8);
const chart_y = value => chart.height - chart.bottom - value / chart.most * (chart.height - chart.bottom - chart.top);

function chart_path(values) {
	return "M" + chart_x(0).toFixed(1) + " " + chart_y(0).toFixed(1) +
		values.map((value, i) => "L" + chart_x(until[i]).toFixed(1) + " " + chart_y(Math.max(value, 0)).toFixed(1)).join("");
}

/* Of the stacks that the search found, as far as they are told. */
function matched_values() {
	if (!sums.hit) return null;
	const found = rows.filter(row => sums.hit[row.node]), values = [];
	for (let i = 0; i < slices; i++)
		values.push(found.reduce((sum, row) => sum + outstanding_at(row, i, state.unit), 0));
	return values;
}

function draw_axes(picture) {
	for (const at of ticks(chart.most, 4, state.unit === "bytes" ? 2 : 10)) {
		svg("line", {class: "grid", x1: chart.left, x2: chart.width - 8, y1: chart_y(at), y2: chart_y(at)}, picture);
		svg("text", {x: chart.left - 6, y: chart_y(at) + 4, "text-anchor": "end"}, picture).textContent =
			state.unit === "bytes" ? size_text(at) : number(at);
	}
	const times = ticks(chart_end(), Math.max(2, Math.floor(chart.width / 110)), 10);
	for (const at of times)
		svg("text", {x: chart_x(at), y: chart.height - 4, "text-anchor": !at ? "start" : chart_x(at) > chart.width - 24 ? "end" : "middle"}, picture).textContent =
			time_text(+at.toPrecision(6));
}

function draw_range(picture) {
	if (!state.range) return;
	const from = chart_x(range_from()), to = chart_x(range_to());
	svg("rect", {class: "range", x: from, y: chart.top, width: Math.max(to - from, 1), height: chart.height - chart.bottom - chart.top},
		picture);
	for (const x of [from, to])
		svg("line", {class: "edge", x1: x, x2: x, y1: chart.top, y2: chart.height - chart.bottom}, picture);
}

function draw_chart() {
	const box = by("chart");
	if (slices < 2) {
		by("timeline").hidden = true;
		return;
	}
	const values = total[state.unit], found = matched_values(), resident = state.unit === "bytes" ? rss : null;
	chart.width = box.clientWidth || 800;
	chart.height = innerWidth <= 640 ? 110 : 150;
	chart.most = Math.max(...values, ...(resident || []), 1);
	const picture = svg("svg", {role: "img", "aria-label": "outstanding over time, at most " + amount_text(chart.most, state.unit)});
	picture.style.height = chart.height + "px";
	draw_axes(picture);
	const path = chart_path(values);
	svg("path", {class: "area", d: path + "L" + chart_x(chart_end()) + " " + chart_y(0) + "Z"}, picture);
	svg("path", {class: "curve", d: path}, picture);
	if (resident) svg("path", {class: "rss", d: rss_path(resident)}, picture);
	if (found) svg("path", {class: "match", d: chart_path(found)}, picture);
	draw_range(picture);
	draw_marks(picture);
	chart.cursor = svg("line", {class: "cursor", visibility: "hidden", y1: chart.top, y2: chart.height - chart.bottom}, picture);
	box.replaceChildren(picture);
	by("chart-title").textContent = (state.unit === "bytes" ? "Outstanding" : "Outstanding blocks") + " over time" +
		(resident ? "; dashed: resident memory (RSS)" : "");
	tell_range();
}

/* Resident memory: bytes at the ends of slices, null where they are not known; null: the trace has none. */
const rss = (() => {
	const from = new Unpack(data.rss), values = Array(slices).fill(null);
	for (let i = 0; i < slices && from.more; i++) {
		const told = from.number();
		if (told) values[i] = told - 1;
	}
	return values.some(value => value !== null) ? values : null;
})();

/* Nothing is drawn where it is not known. */
function rss_path(values) {
	return values.map((value, i) => value === null ? "" :
		(i && values[i - 1] !== null ? "L" : "M") + chart_x(Math.min(until[i], chart_end())).toFixed(1) + " " + chart_y(value).toFixed(1)).join("");
}

const range_from = () => state.range && state.range[0] ? until[state.range[0] - 1] : 0;
const range_to = () => until[state.range ? state.range[1] : slices - 1];

function tell_range() {
	by("from").value = +range_from().toFixed(3);
	by("to").value = +range_to().toFixed(3);
	by("from").max = by("to").max = chart_end();
	by("whole").disabled = !state.range;
	let note = "Drag over the chart to choose a time: all views then show what came to be outstanding in it.";
	if (state.range) {
		const net = total[state.unit][state.range[1]] - (state.range[0] ? total[state.unit][state.range[0] - 1] : 0);
		note = "All views show the net growth of each stack from " + time_text(range_from()) + " to " + time_text(range_to()) +
			": in all " + change_text(net, state.unit) + (state.unit === "blocks" ? " blocks" : "") + ". " +
			(sums.shrunk[state.unit] ? "Stacks that shrank, by " + amount_text(sums.shrunk[state.unit], state.unit) +
				" together, are in tables only. " : "") + approximations();
	}
	by("range-note").textContent = note;
	by("range-note").classList.toggle("chosen", state.range !== null);
}

/* What of a range is not exact. */
function approximations() {
	const said = ["Times are those of " + slices + " slices."];
	if (coarse.rows) said.push("Of " + number(coarse.rows) + " lighter stacks only each 16th slice is known, the rest is between.");
	if (coarse.none) said.push("Of " + number(coarse.none) + " of the lightest, even growth from first to last call is assumed.");
	if (state.thread >= 0 || state.view === "threads") said.push("Threads are given the shares that they have at the end.");
	return said.join(" ");
}

/* Choose from @from to @to seconds, as the slices allow; null: all. */
function choose_range(from, to) {
	if (slices < 2) return;
	if (from === null || !(to > from)) {
		state.range = null;
	} else {
		let first = until.findIndex(end => end > from), last = until.findIndex(end => end >= to);
		if (first > 0 && until[first] - from < from - until[first - 1]) first++;
		if (last < 0) last = slices - 1;
		if (last > first && to - until[last - 1] < until[last] - to) last--;
		first = Math.max(0, Math.min(first < 0 ? 0 : first, last));
		state.range = first === 0 && last === slices - 1 ? null : [first, last];
	}
	refresh();
}

function chart_seconds(event) {
	const box = by("chart").getBoundingClientRect();
	const share = (event.clientX - box.left - chart.left) / (chart.width - chart.left - 8);
	return Math.min(Math.max(share, 0), 1) * chart_end();
}

function point_at_chart(event) {
	const s = chart_seconds(event), slice = Math.max(0, until.findIndex(end => end >= s));
	chart.cursor.setAttribute("visibility", "visible");
	chart.cursor.setAttribute("x1", chart_x(until[slice]));
	chart.cursor.setAttribute("x2", chart_x(until[slice]));
	show_tip([...marks_near(chart_x(s)), "at " + time_text(until[slice]), size_text(total.bytes[slice]) + " in " + blocks_text(total.blocks[slice]),
		...(rss && rss[slice] !== null ? ["RSS " + size_text(rss[slice])] : [])],
		event.clientX, event.clientY);
}

function watch_chart() {
	const box = by("chart");
	box.addEventListener("pointerdown", event => {
		chart.drag = chart_seconds(event);
		box.setPointerCapture(event.pointerId);
	});
	box.addEventListener("pointermove", event => {
		const at = chart_seconds(event);
		point_at_chart(event);
		if (chart.drag === null || Math.abs(chart_x(chart.drag) - chart_x(at)) < 4) return;
		if (!chart.wish) requestAnimationFrame(() => { choose_range(...chart.wish.splice(0, 2)); chart.wish = null; });
		chart.wish = [Math.min(chart.drag, at), Math.max(chart.drag, at)];
	});
	box.addEventListener("pointerup", () => { chart.drag = null; });
	box.addEventListener("pointercancel", () => { chart.drag = null; });
	box.addEventListener("pointerleave", () => {
		hide_tip();
		if (chart.cursor) chart.cursor.setAttribute("visibility", "hidden");
	});
	box.addEventListener("dblclick", () => choose_range(null));
	const typed = () => choose_range(+by("from").value, +by("to").value);
	by("from").addEventListener("change", typed);
	by("to").addEventListener("change", typed);
	by("whole").addEventListener("click", () => choose_range(null));
}
