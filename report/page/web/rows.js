/* rows.js - a table of stacks: sorted by a column, each stack folded into a line that opens */
class RowTable {
	/* @columns: {key, label, title, kind, value(row), cell(row)}; @groups: rows with one .group are one. */
	constructor(place, options) {
		Object.assign(this, options);
		this.place = place;
		this.shown = options.most;
		this.opened = new Set();
		this.unfolded = new Set();
		this.table = element("table", {class_name: "rows"});
		this.more = element("button", {onclick: () => { this.shown += 200; this.draw(); }});
		place.append(this.table, this.more);
	}

	sort_by(key) {
		this.ascending = this.sort === key ? !this.ascending : false;
		this.sort = key;
		this.draw();
	}

	head() {
		return element("thead", {}, element("tr", {}, ...this.columns.map(column => {
			const sorted = this.sort === column.key;
			return element("th", {scope: "col", class_name: column.kind, title: column.title,
				"aria-sort": sorted ? (this.ascending ? "ascending" : "descending") : "none"},
			column.value && this.sortable ? element("button", {text: column.label, onclick: () => this.sort_by(column.key)}) : column.label);
		})));
	}

	/* What is listed: rows, or groups of them. */
	items() {
		const column = this.columns.find(column => column.key === this.sort), all = new Map();
		for (const row of this.rows()) {
			const key = this.grouped && row.group ? "g" + row.group : "r" + row.number;
			if (!all.has(key)) all.set(key, {key, rows: []});
			all.get(key).rows.push(row);
		}
		const items = [...all.values()].map(item => this.group(item));
		if (!column) return items;
		const order = this.ascending ? 1 : -1;
		return items.map((item, i) => [column.value(item), i, item]).sort((a, b) =>
			(a[0] < b[0] ? -order : a[0] > b[0] ? order : a[1] - b[1])).map(entry => entry[2]);
	}

	draw() {
		const items = this.items(), body = element("tbody", {});
		for (const item of items.slice(0, this.shown)) {
			body.append(this.row(item));
			if (this.opened.has(item.key)) this.add_details(body, item);
		}
		this.table.replaceChildren(this.head(), body);
		const left = items.length - this.shown;
		this.more.hidden = left <= 0 || this.no_more;
		this.more.textContent = "show more: " + number(Math.max(left, 0)) + " are left";
		document.body.dataset.rows = Math.min(items.length, this.shown);
		return items;
	}

	row(item) {
		return element("tr", {}, ...this.columns.map(column => {
			const cell = element("td", {class_name: column.kind, "data-label": column.short ?? column.label});
			if (column.key === "stack") {
				cell.removeAttribute("data-label");
				cell.append(this.fold(item));
			} else {
				cell.append(column.cell(item));
				if (column.exact) cell.title = column.exact(item);
			}
			return cell;
		}));
	}

	fold(item) {
		const open = this.opened.has(item.key), text = short_stack(item.rows[0], 6);
		return element("button", {class_name: "fold stack", "aria-expanded": String(open), title: "open or close the whole stack",
			text: (item.rows.length > 1 ? number(item.rows.length) + " stacks: " : "") + text, onclick: () => {
				if (open) this.opened.delete(item.key);
				else this.opened.add(item.key);
				this.draw();
				this.refocus(item.key);
			}});
	}

	refocus(key) {
		const at = this.items().findIndex(item => item.key === key), rows = this.table.querySelectorAll("tbody > tr:not(.details)");
		const button = rows[at] && rows[at].querySelector(".fold");
		if (button) button.focus();
	}

	/* Below a group: its stacks; below a stack: its frames. */
	add_details(body, item) {
		if (item.rows.length === 1) {
			body.append(this.details(item));
			return;
		}
		for (const row of item.rows.slice(0, 30)) {
			const one = this.group({key: item.key + " " + row.number, rows: [row]}), line = this.row(one);
			line.classList.add("details", "variant");
			body.append(line);
			if (this.opened.has(one.key)) body.append(this.details(one));
		}
		if (item.rows.length > 30)
			body.append(element("tr", {class_name: "details"}, element("td", {colspan: this.columns.length,
				text: "and " + number(item.rows.length - 30) + " more stacks of this group"})));
	}

	details(item) {
		const row = item.rows[0], list = element("ol", {start: "0"});
		for (const frame of frames_of(row)) {
			const place = line_text(frame.line), module = module_path(frame.name);
			list.append(element("li", {}, element("span", {class_name: "name", text: function_name(frame.name) + frame.times + (is_inlined(frame.line) ? " (inlined)" : "")}),
				element("small", {text: (place ? "  " + place : "") + (module ? "  [" + file_name(module) + "]" : ""), title: module})));
		}
		return element("tr", {class_name: "details"}, element("td", {colspan: this.columns.length}, list,
			...this.notes(row).map(text => element("p", {class_name: "note", text}))));
	}
}

/* What was outstanding over time, as a small picture. */
function spark(item) {
	const picture = document.createElementNS(SVG, "svg"), values = [], step = Math.max(1, Math.floor(slices / 32));
	picture.setAttribute("class", "spark");
	picture.setAttribute("viewBox", "0 0 100 18");
	picture.setAttribute("aria-hidden", "true");
	for (let i = slices - 1; i >= 0; i -= step)
		values.unshift(item.rows.reduce((sum, row) => sum + outstanding_at(row, i, state.unit), 0));
	const most = Math.max(...values, 1);
	svg("path", {d: "M" + values.map((value, i) => (i * 100 / Math.max(values.length - 1, 1)).toFixed(1) + " " +
		(17 - 16 * Math.max(value, 0) / most).toFixed(1)).join("L")}, picture);
	return picture;
}
