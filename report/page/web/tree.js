/* tree.js - a tree as a table whose rows are opened: for the eyes, for screen readers and for paper */
class TreeTable {
	constructor(kind, place) {
		this.kind = kind;
		this.open = new Set([""]);
		this.most = 200;
		this.table = element("table", {class_name: "tree", role: "treegrid", id: kind + "-table",
			"aria-label": kind === "flame" ? "calls, callers first" : "functions, callees first"});
		this.more = element("button", {text: "show more", onclick: () => { this.most += 400; this.draw(); }});
		this.table.addEventListener("keydown", event => this.key(event));
		place.append(this.table, this.more);
	}

	get columns() {
		return differs ? ["change", "before", "after"] : [state.unit === "bytes" ? "outstanding" : "blocks", "share"];
	}

	/* The rows that are open, in their order. */
	list() {
		const out = [], add = frame => {
			for (const child of frame.children) {
				if (out.length > this.most) return;
				out.push(child);
				if (this.open.has(child.path.join())) add(child);
			}
		};
		add(root_of(this.kind));
		return out;
	}

	draw() {
		const list = this.list(), root = root_of(this.kind), head = element("tr", {role: "row"},
			element("th", {text: this.kind === "flame" ? "function, with what it calls" : "function, with its callers", role: "columnheader"}),
			...this.columns.map(text => element("th", {class_name: "n", text, role: "columnheader"})));
		this.shown = list.slice(0, this.most);
		this.more.hidden = list.length <= this.most;
		this.table.replaceChildren(element("thead", {role: "rowgroup"}, head),
			element("tbody", {role: "rowgroup"}, ...this.shown.map((frame, i) => this.row(frame, i, root))));
		document.body.dataset.drawn = this.shown.length;
	}

	row(frame, i, root) {
		const key = frame.path.join(), leaf = !frame.children.length, open = this.open.has(key);
		const name = element("td", {role: "gridcell", style: "padding-left:" + Math.min((frame.depth - 1) * 14, 280) + "px"},
			element("button", {class_name: "open", tabindex: "-1", "aria-label": open ? "close" : "open", text: leaf ? "" : open ? "\u25BE" : "\u25B8",
				onclick: () => this.toggle(frame, i)}),
			element("span", {class_name: "name", text: frame.text, title: tip_lines(frame).join("\n")}));
		return element("tr", {role: "row", tabindex: i ? "-1" : "0", "aria-level": frame.depth, "aria-expanded": leaf ? undefined : String(open),
			class_name: is_found(frame.name) ? "found" : undefined}, name, ...this.cells(frame, root));
	}

	cells(frame, root) {
		const cell = (text, title) => element("td", {class_name: "n", role: "gridcell", text, title});
		if (differs)
			return [cell(change_text(change_of(frame), state.unit), signed(change_of(frame))),
				cell(amount_text(frame.before[state.unit], state.unit), number(frame.before[state.unit])),
				cell(amount_text(frame.after[state.unit], state.unit), number(frame.after[state.unit]))];
		const share = root.weight ? 100 * frame.weight / root.weight : 0;
		return [cell(amount_text(frame.weight, state.unit), number(frame.weight)),
			element("td", {class_name: "n", role: "gridcell"}, element("span", {class_name: "share wide"},
				element("i", {style: "width:" + share.toFixed(1) + "%"})), share.toFixed(1) + " %")];
	}

	toggle(frame, i) {
		const key = frame.path.join();
		if (this.open.has(key)) this.open.delete(key);
		else this.open.add(key);
		this.draw();
		this.focus_row(i);
	}

	focus_row(i) {
		const row = this.table.tBodies[0].rows[Math.max(0, Math.min(i, this.shown.length - 1))];
		if (row) row.focus();
	}

	key(event) {
		const row = event.target.closest("tr"), i = row ? row.sectionRowIndex : -1, frame = this.shown[i];
		if (!row || row.parentNode !== this.table.tBodies[0]) return;
		const open = this.open.has(frame.path.join());
		if (event.key === "ArrowDown") this.focus_row(i + 1);
		else if (event.key === "ArrowUp") this.focus_row(i - 1);
		else if (event.key === "ArrowLeft" && !open) this.focus_row(this.shown.indexOf(frame.parent));
		else if (event.key === "Enter" || (event.key === "ArrowRight" && !open) || event.key === "ArrowLeft") this.toggle(frame, i);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}
}

/* A view that is a graph or a table of the same tree. */
class TreeView {
	constructor(kind, as_table) {
		const place = by(kind), graph = element("div", {}), table = element("div", {});
		this.as_table = as_table;
		this.buttons = ["graph", "table"].map(text => element("button", {text, onclick: () => {
			this.as_table = text === "table";
			this.draw();
		}}));
		place.append(element("div", {class_name: "bar"},
			element("h2", {text: kind === "flame" ? "Callers first" : "Callees first"}),
			element("span", {class_name: "space"}), ...this.buttons,
			element("button", {id: kind + "-reset", text: "whole graph", onclick: () => this.graph.zoom(this.graph.root)})), graph, table);
		this.graph = new Graph(kind, graph);
		this.table = new TreeTable(kind, table);
		this.places = [graph, table];
	}

	draw() {
		this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(this.as_table === !!i)));
		this.places.forEach((place, i) => { place.hidden = this.as_table !== !!i; });
		if (this.as_table) this.table.draw();
		else this.graph.draw();
	}
}
