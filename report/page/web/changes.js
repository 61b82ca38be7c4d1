/* changes.js - of a difference: the table of its stacks, and the verdict */
function sum_changes(item) {
	item.first = item.rows[0];
	for (const side of ["before", "after"]) item[side] = {bytes: 0, blocks: 0};
	for (const row of item.rows)
		for (const unit of ["bytes", "blocks"]) {
			item.before[unit] += row.before[unit];
			item.after[unit] += row[unit];
		}
	return item;
}

const changes_view = {
	make() {
		const by_change = item => item.after[state.unit] - item.before[state.unit];
		const columns = [
			{key: "change", kind: "n", label: "change", short: "", value: item => Math.abs(by_change(item)),
				cell: item => change_text(by_change(item), state.unit),
				exact: item => signed(item.after.bytes - item.before.bytes) + " bytes, " + signed(item.after.blocks - item.before.blocks) + " blocks"},
			{key: "verdict", kind: "shape", label: "verdict", short: "", value: item => item.first.change, cell: item => badge(item.first.change)},
			{key: "before", kind: "n", label: "before", value: item => item.before[state.unit], cell: item => amount_text(item.before[state.unit], state.unit)},
			{key: "after", kind: "n", label: "after", value: item => item.after[state.unit], cell: item => amount_text(item.after[state.unit], state.unit)},
			{key: "stack", kind: "stack", label: "stack, innermost first"},
		];
		by("growth").append(element("h2", {text: "Stacks, and how they changed"}));
		this.table = new RowTable(by("growth"), {columns, rows: () => rows.filter(row => !sums.hit || sums.hit[row.node]), group: sum_changes,
			notes: row => [signed(row.bytes - row.before.bytes) + " bytes (" + number(row.before.bytes) + " before, " + number(row.bytes) +
				" after), " + signed(row.blocks - row.before.blocks) + " blocks"], sortable: true, grouped: false, sort: "", most: 50});
	},
	draw() { this.table.draw(); },
};

function diff_verdict() {
	const more = {stacks: 0, bytes: 0}, less = {stacks: 0, bytes: 0};
	for (const row of rows) {
		const change = row.bytes - row.before.bytes, side = change > 0 ? more : less;
		side.bytes += Math.abs(change);
		side.stacks += change ? 1 : 0;
	}
	const net = data.totals.after.bytes - data.totals.before.bytes, stacks = n => number(n) + (n === 1 ? " stack" : " stacks");
	if (!more.stacks && !less.stacks) return ["good", "Both have the same stacks outstanding, with the same sizes."];
	const top = rows.reduce((best, row) => row.bytes - row.before.bytes > best.bytes - best.before.bytes ? row : best, rows[0]);
	return [net > 0 ? "bad" : "good", (net >= 0 ? "+" : "") + size_text(net) + " outstanding: " + stacks(more.stacks) + " with " + size_text(more.bytes) +
		" more, " + stacks(less.stacks) + " with " + size_text(less.bytes) + " less",
	...(more.stacks ? ["; most came by ", element("code", {text: short_stack(top, 3)})] : []), "."];
}
