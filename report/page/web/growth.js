/* growth.js - the stacks and how they grew: the table, and the verdict in one sentence */
/* One line for stacks of a group: sums, and what cannot be summed up of the first. */
function sum_up(item) {
	const sum = (key, of) => item.rows.reduce((all, row) => all + (of ? row[of][key] : row[key]), 0);
	item.first = item.rows[0];
	item.value = {bytes: sum("bytes", "value"), blocks: sum("blocks", "value")};
	item.rate = sum("rate") || 0;
	item.freed = 1 - sum("blocks") / Math.max(sum("allocations"), 1);
	item.since = Math.min(...item.rows.map(row => row.first));
	item.lifetime = item.first.lifetime || 0;
	if (data.reach) item.lost = {bytes: sum("bytes", "lost"), blocks: sum("blocks", "lost")};
	return item;
}

/* Bytes a minute: of the whole time as the report judges it, of a range as it is. */
function rate_of(item) {
	if (!state.range) return item.rate;
	return item.value.bytes / Math.max(range_to() - range_from(), 1e-9) * 60;
}

const is_told = () => !differs && data.growth_told && rows.some(row => row.shape);

function badge(text, title) { return element("span", {class_name: "badge " + text, text, title}); }

function growth_columns() {
	const order = Object.fromEntries(SHAPES.map((shape, i) => [shape, -i]));
	const columns = [
		{key: "size", kind: "n", get label() { return state.range ? "net growth" : state.unit === "bytes" ? "outstanding" : "blocks"; }, short: "",
			value: item => item.value[state.unit], cell: item => amount_text(item.value[state.unit], state.unit),
			exact: item => number(item.value.bytes) + " bytes in " + blocks_text(item.value.blocks)},
		{key: "lost", kind: "n", label: "lost", title: "what no pointer leads to, at the end of the recording", value: item => item.lost[state.unit],
			cell: item => item.lost.blocks ? amount_text(item.lost[state.unit], state.unit) : "-",
			exact: item => number(item.lost.bytes) + " bytes in " + blocks_text(item.lost.blocks)},
		{key: "rate", kind: "n", label: "growth", short: "", title: "by the second half of the recording, or by the range chosen",
			value: rate_of, cell: item => rate_text(rate_of(item)),
			exact: item => data.sample && !state.range && item.rows.length === 1 ?
				"between " + rate_text(item.first.low) + " and " + rate_text(item.first.high) + " in 95 of 100 cases" : ""},
		{key: "shape", kind: "shape", label: "verdict", short: "", value: item => order[item.first.shape] * 1e15 + rate_of(item),
			cell: item => badge(item.first.shape || "-", (data.shapes || {})[item.first.shape])},
		{key: "freed", kind: "n wide", label: "freed", title: "share of its blocks", value: item => item.freed,
			cell: item => (100 * item.freed).toFixed(1) + " %"},
		{key: "since", kind: "n wide", label: "first at", value: item => -item.since, cell: item => time_text(item.since)},
		{key: "trend", kind: "trend wide", label: "trend", cell: spark},
		{key: "stack", kind: "stack", label: "stack, innermost first"},
	];
	return columns.filter(column => is_told() || !["rate", "shape"].includes(column.key))
		.filter(column => slices > 1 || column.key !== "trend").filter(column => data.reach || column.key !== "lost");
}

function growth_rows() {
	return rows.filter(row => (row.value.bytes || row.value.blocks) && (!sums.hit || sums.hit[row.node]) &&
		(!state.only_lost || row.lost.blocks));
}

function row_notes(row) {
	const notes = [number(row.bytes) + " bytes in " + blocks_text(row.blocks) + " outstanding; allocated " + number(row.allocated) +
		" bytes in " + blocks_text(row.allocations) + " from " + time_text(row.first) + " to " + time_text(row.last)];
	if (row.lost && row.lost.blocks)
		notes.push(number(row.lost.bytes) + " bytes in " + blocks_text(row.lost.blocks) + (row.lost.blocks === 1 ? " is lost: no pointer leads to it" : " are lost: no pointer leads to them"));
	if (row.lifetime) notes.push("half of the freed blocks lived at most " + time_text(row.lifetime / 1e6));
	if (row.takers.length)
		notes.push("by " + row.takers.slice(0, 5).map(taker => thread_name(taker.thread) + " (" + size_text(taker.bytes) + ")").join(", ") +
			(row.takers.length > 5 ? " and " + number(row.takers.length - 5) + " more threads" : ""));
	if (row.shape && is_told()) notes.push(row.shape + ": " + data.shapes[row.shape]);
	return notes;
}

const growth_view = {
	make() {
		const lost = element("input", {type: "checkbox", id: "only-lost"});
		const place = by("growth"), group = element("input", {type: "checkbox", id: "grouped", checked: ""});
		place.append(element("div", {class_name: "bar"}, element("h2", {text: is_told() ? "Stacks, and how they grew" : "Stacks"}),
			element("span", {class_name: "space"}), ...(data.reach ? [element("label", {}, lost, " only what is lost")] : []),
			element("label", {}, group, " group by innermost functions")));
		this.table = new RowTable(place, {columns: growth_columns(), rows: growth_rows, group: sum_up, notes: row_notes, sortable: true,
			grouped: true, sort: is_told() && data.attached ? "shape" : "size", most: 50});
		place.append(element("p", {class_name: "note", text: data.sample ? "A sample: " + data.sample + ". Sums are estimates." : ""}));
		lost.addEventListener("change", () => {
			state.only_lost = lost.checked;
			this.table.draw();
		});
		group.addEventListener("change", () => {
			this.table.grouped = group.checked;
			this.table.draw();
		});
	},
	draw() { this.table.draw(); },
};

/* The stacks that grow, by group, the fastest first. */
function growing_groups() {
	const all = new Map();
	for (const row of rows)
		if (row.shape === "growing") {
			if (!all.has(row.group)) all.set(row.group, {rows: []});
			all.get(row.group).rows.push(row);
		}
	return [...all.values()].map(sum_up).sort((a, b) => b.rate - a.rate);
}

function heaviest_part(parts) {
	const row = rows[0];
	if (!row || !row.bytes) return parts;
	if (row.bytes < data.totals.shown.bytes / 20) return [...parts, ", spread over " + number(rows.length) + " stacks"];
	return [...parts, ", ", percent(row.bytes, data.totals.shown.bytes), " of it by ", element("code", {text: short_stack(row, 3)})];
}

/* What no pointer leads to. */
function lost_sum() {
	const all = data.reach ? [data.reach["lost"], data.reach["lost with those"]] : [];
	return all.reduce((sum, one) => ({bytes: sum.bytes + one.bytes, blocks: sum.blocks + one.blocks}), {bytes: 0, blocks: 0});
}

/* The answer in one sentence: its parts, and whether it is "bad" or "good". */
function report_verdict() {
	const [kind, ...parts] = blocks_verdict(), lost = lost_sum();
	if (lost.blocks)
		return ["bad", size_text(lost.bytes) + " in " + blocks_text(lost.blocks) + (lost.blocks === 1 ? " is" : " are") +
			" lost: no pointer leads there. ", ...parts];
	if (!data.memory_answer) return [kind, ...parts];
	return ["bad", "RSS " + data.memory_answer + ": " + data.memory_reason + ". ", ...parts];
}

function blocks_verdict() {
	const shown = data.totals.shown, grown = is_told() ? growing_groups() : [];
	const sum = size_text(shown.bytes) + " in " + blocks_text(shown.blocks);
	if (grown.length) {
		const rate = grown.reduce((all, item) => all + item.rate, 0), more = grown.length - 1;
		return ["bad", "Memory grows by " + rate_text(rate).replace("+", "") + ": most in ", element("code", {text: short_stack(grown[0].first, 3)}),
			" (" + rate_text(grown[0].rate) + " since " + time_text(grown[0].since) + ")" +
			(more ? ", and at " + number(more) + " more " + (more === 1 ? "place" : "places") : "") + "."];
	}
	if (!data.totals.allocated.blocks) return [data.memory_answer ? "bad" : "", "No allocation was recorded."];
	if (!shown.blocks) return ["good", "Nothing is outstanding: each of the " + blocks_text(data.totals.allocated.blocks) + " was freed."];
	if (!data.attached) return ["bad", ...heaviest_part([sum + " were not freed by the end of the recording"]), "."];
	if (+data.seconds < 1) return ["", ...heaviest_part(["Recorded for less than a second, too short to tell what grows; " + sum + " are outstanding"]), "."];
	if (data.attached && !data.growth_told)
		return ["", ...heaviest_part(["Of blocks that were given out from some moment on it is not told what grows; " + sum + " are outstanding"]), "."];
	const unclear = rows.filter(row => row.shape === "unclear").length;
	if (unclear)
		return ["", ...heaviest_part(["Recorded for too short a time, or too small a part, to tell a leak from a cache at " + number(unclear) +
			(unclear === 1 ? " stack" : " stacks") + " that grew; " + sum + " are outstanding"]), "."];
	return ["good", ...heaviest_part(["Nothing grew all the time in " + time_text(+data.seconds) + "; " + sum +
		" that were allocated meanwhile are outstanding"]), "."];
}
