/* overview.js - the head of the page, the figures, and the first stacks */
const NAMES = {"at the peak": "peak", "left out by top": "left out by -n"};

function fill_head() {
	document.title = data.title;
	by("title").textContent = data.title.replace(/^mleak: o/, "O"); // the brand is beside it
	const [kind, ...parts] = differs ? diff_verdict() : report_verdict();
	by("verdict").replaceChildren(...parts);
	if (kind) by("verdict").classList.add(kind);
	const began = data.began_ms ? new Date(data.began_ms).toISOString().slice(0, 16).replace("T", " ") + " UTC, " : "";
	by("recorded").textContent = "seconds" in data ? "recorded for " + data.seconds + " s; " : "";
	by("lost").textContent = data.lost ? number(data.lost) + " events were lost: the figures may be wrong" : "no events were lost";
	by("lost").classList.toggle("some", data.lost > 0);
	by("lost").textContent += "; complete stacks: " + number(data.unwound.complete) + " of " + number(data.unwound.allocations);
	by("recorded").title = began + (data.system ? "Linux " + data.system + ", " : "") + (data.recorder || "");
	if (data.notes) by("notes").textContent = data.notes + "; ";
	if (data.shown) by("shown").textContent = "shown: " + data.shown + "; ";
}

function figure(text, label, title) {
	return element("div", {class_name: "figure", title}, element("b", {text}), element("span", {text: label}));
}

function figures() {
	const all = element("div", {class_name: "figures"}), add = (...args) => all.append(figure(...args));
	const lost = lost_sum();
	if (data.reach) add(size_text(lost.bytes), "lost", number(lost.bytes) + " bytes in " + blocks_text(lost.blocks));
	for (const [name, sum] of Object.entries(data.totals))
		if (sum.bytes !== undefined && (["allocated", "freed", "outstanding", "at the peak"].includes(name) || differs))
			add(size_text(sum.bytes), NAMES[name] || name, number(sum.bytes) + " bytes in " + blocks_text(sum.blocks));
	add(number(data.lost), "lost events");
	add(percent(data.unwound.complete, data.unwound.allocations), "complete stacks",
		number(data.unwound.complete) + " of " + number(data.unwound.allocations));
	return all;
}

function totals_table() {
	const table = element("table", {id: "totals"});
	for (const [name, sum] of [...Object.entries(data.totals), ...Object.entries(data.reach || {})])
		if (typeof sum === "object")
			table.append(element("tr", {}, element("td", {text: name}), element("td", {class_name: "n", text: blocks_text(sum.blocks)}),
				element("td", {class_name: "n", text: sum.bytes === undefined ? "" : number(sum.bytes) + " bytes"})));
	return table;
}

const overview = {
	make() {
		const top = element("div", {class_name: "card"}), totals = element("div", {class_name: "card"}, element("h2", {text: "Sums"}), totals_table());
		by("overview").append(figures(), element("div", {class_name: "columns"}, totals, top));
		top.append(element("h2", {text: differs ? "What changed most" : is_told() ? "What grows, or is largest" : "What is largest"}));
		if (data.resident)
			by("overview").append(element("div", {class_name: "card", id: "resident"},
				element("h2", {text: "Where the resident memory is"}), element("pre", {text: data.resident.join("\n"), tabIndex: 0})));
		const view = differs ? changes_view : growth_view;
		this.table = new RowTable(top, {...view.table, columns: view.table.columns.filter(c => !["freed", "since"].includes(c.key)), most: 8,
			no_more: true, sortable: false, table: undefined});
		top.append(element("p", {class_name: "note", id: "more"}));
	},
	draw() {
		const left = this.table.draw().length - 8, rest = differs ? data.rest.stacks : data.rest.stacks;
		by("more").replaceChildren(...(left > 0 ? [element("button", {text: number(left) + " more in the table", onclick: () => show_view("growth")})] : []),
			rest ? " " + number(rest) + " more stacks, the lightest, are in no view but in the sums" : "");
	},
};
