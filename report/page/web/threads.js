/* threads.js - what is outstanding by the thread that allocated it */
function thread_name(thread) {
	const [tgid, tid, name] = data.threads.slice(3 * thread, 3 * thread + 3);
	return (name || "thread") + " (" + tid + (tgid !== tid ? " of " + tgid : "") + ")";
}

/* What each thread allocated, and who freed it, over the whole recording; of none if it is not told. */
const accounts = (() => {
	const all = new Map(), from = new Unpack(data.accounts), amount = () => ({bytes: from.number(), blocks: from.number()});
	while (from.more)
		all.set(from.number(), {allocated: amount(), own: amount(), others: amount(), counted: amount(), counted_left: amount()});
	return all;
})();

/* All threads that allocated, or have something outstanding, as items of a table. */
function thread_items() {
	const all = [];
	if (!sums.hit)
		for (const thread of accounts.keys())
			all[thread] = {thread, key: thread, value: {bytes: 0, blocks: 0}, stacks: 0};
	for (const row of rows) {
		if (sums.hit && !sums.hit[row.node]) continue;
		for (const taker of row.takers) {
			const item = all[taker.thread] = all[taker.thread] || {thread: taker.thread, key: taker.thread, value: {bytes: 0, blocks: 0}, stacks: 0};
			for (const unit of ["bytes", "blocks"])
				item.value[unit] += state.range && row[unit] ?
					Math.max(outstanding_at(row, state.range[1], unit) - outstanding_at(row, state.range[0] - 1, unit), 0) * taker[unit] / row[unit] :
					taker[unit];
			item.stacks++;
		}
	}
	return all.filter(item => item);
}

/* What of the accounts has no stacks, as text; nothing if there is none. */
function counted_text() {
	const sum = {counted: {bytes: 0, blocks: 0}, counted_left: {bytes: 0, blocks: 0}};
	for (const account of accounts.values())
		for (const kind of ["counted", "counted_left"])
			for (const unit of ["bytes", "blocks"]) sum[kind][unit] += account[kind][unit];
	const text = amount => amount_text(amount.bytes, "bytes") + " in " + blocks_text(amount.blocks);
	return sum.counted.blocks ? " Only counted, without stacks: " + text(sum.counted) + "; outstanding of these: " + text(sum.counted_left) + "." : "";
}

/* A column of the accounts. */
function account_column(key, label) {
	const amount = item => accounts.has(item.thread) ? accounts.get(item.thread)[key] : {bytes: 0, blocks: 0};
	return {key, label, kind: "n wide", amount, value: item => amount(item)[state.unit]};
}

function choose_thread(thread) {
	state.thread = thread;
	by("thread-chip").hidden = thread < 0;
	by("thread-chip").textContent = thread < 0 ? "" : "only " + thread_name(thread) + " \u2715";
	refresh();
}

const threads_view = {
	sort: "size", ascending: false,
	make() {
		by("threads").append(element("h2", {text: "Threads, by what they allocated and is outstanding"}), this.table = element("table", {}),
			element("p", {class_name: "note", text: "A click on a thread shows it alone in all views." + (accounts.size ?
				" What was allocated and freed is of the whole recording." + counted_text() : "")}));
	},
	columns: [
		{key: "name", label: "thread", value: item => thread_name(item.thread)},
		{key: "size", label: "outstanding", kind: "n", value: item => item.value[state.unit]},
		{key: "share", label: "share", kind: "n", value: item => item.value[state.unit]},
		{key: "stacks", label: "stacks", kind: "n wide", value: item => item.stacks},
		...(accounts.size ? [account_column("allocated", "allocated"), account_column("own", "freed by itself"),
			account_column("others", "freed by others")] : []),
	],
	draw() {
		const items = thread_items(), column = this.columns.find(column => column.key === this.sort), order = this.ascending ? 1 : -1;
		const sum = items.reduce((all, item) => all + item.value[state.unit], 0);
		items.sort((a, b) => (column.value(a) < column.value(b) ? -order : column.value(a) > column.value(b) ? order : a.thread - b.thread));
		this.table.replaceChildren(element("thead", {}, element("tr", {}, ...this.columns.map(c => element("th", {scope: "col", class_name: c.kind,
			"aria-sort": c.key === this.sort ? (this.ascending ? "ascending" : "descending") : "none"},
		element("button", {text: c.label, onclick: () => {
			this.ascending = this.sort === c.key ? !this.ascending : false;
			this.sort = c.key;
			this.draw();
		}}))))), element("tbody", {}, ...items.slice(0, 1000).map(item => this.row(item, sum))));
		document.body.dataset.rows = items.length;
	},
	row(item, sum) {
		const value = item.value[state.unit];
		return element("tr", {}, element("td", {}, element("button", {class_name: "stack", text: thread_name(item.thread),
			"aria-pressed": String(state.thread === item.thread), onclick: () => choose_thread(state.thread === item.thread ? -1 : item.thread)})),
		element("td", {class_name: "n", text: amount_text(value, state.unit), title: number(item.value.bytes) + " bytes in " + blocks_text(item.value.blocks)}),
		element("td", {class_name: "n"}, element("span", {class_name: "share wide"}, element("i", {style: "width:" + (sum ? 100 * value / sum : 0) + "%"})),
			percent(value, sum)), element("td", {class_name: "n wide", text: number(item.stacks)}),
		...this.columns.filter(column => column.amount).map(column => element("td", {class_name: column.kind,
			text: amount_text(column.amount(item)[state.unit], state.unit),
			title: number(column.amount(item).bytes) + " bytes in " + blocks_text(column.amount(item).blocks)})));
	},
};
