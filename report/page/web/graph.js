/* graph.js - a tree as a graph: each frame is as wide as what it holds, its children are below it */
const ROW = 19, LEAST = 0.5, CHARACTER = 6.3;

class Graph {
	constructor(kind, place) {
		this.kind = kind;
		this.focus = [];     // path of the frame that is as wide as the graph
		this.cursor = null;  // frame that keys move
		this.drawn = [];
		this.detail = element("p", {class_name: "detail", role: "status", id: kind + "-detail"});
		this.crumbs = element("div", {class_name: "crumbs", "aria-label": "from all to the frame shown"});
		this.canvas = element("canvas", {"aria-hidden": "true"});
		this.item = element("div", {class_name: "hush", role: "treeitem", id: kind + "-item"});
		this.room = element("div", {});
		this.box = element("div", {class_name: "graph", tabindex: "0", role: "tree", id: kind + "-graph",
			"aria-label": kind === "flame" ? "flame graph, callers first" : "graph, callees first",
			"aria-activedescendant": kind + "-item"}, this.canvas, this.room, this.item);
		place.append(this.crumbs, this.detail, this.box, legend());
		this.watch();
	}

	get root() { return root_of(this.kind); }

	watch() {
		this.box.addEventListener("click", event => {
			const box = this.frame_at(event);
			if (box) this.zoom(box.frame);
		});
		this.box.addEventListener("pointermove", event => {
			const box = this.frame_at(event);
			if (box) show_tip(tip_lines(box.frame), event.clientX, event.clientY);
			else hide_tip();
		});
		this.box.addEventListener("pointerleave", hide_tip);
		this.box.addEventListener("scroll", () => this.draw());
		this.box.addEventListener("keydown", event => this.key(event));
	}

	/* Where each frame is: [x, width] of those below the focus, and of its callers, over all. */
	layout(width) {
		const todo = [], out = [], focus = frame_by_path(this.root, this.focus);
		for (let up = focus.parent; up; up = up.parent) out.push({frame: up, x: 0, width, faded: true});
		todo.push({frame: focus, x: 0, width, faded: false});
		while (todo.length) {
			const box = todo.pop(), frame = box.frame;
			out.push(box);
			if (!frame.weight) continue;
			let x = box.x;
			const scale = box.width / frame.weight;
			if (box.width < LEAST) continue;
			for (const child of frame.children) {
				const w = child.weight * scale;
				if (w < LEAST) break; // they are sorted
				todo.push({frame: child, x, width: w, faded: false});
				x += w;
			}
		}
		this.focused = focus;
		return out;
	}

	draw() {
		const ratio = window.devicePixelRatio || 1, width = this.box.clientWidth || 1000;
		const key = [this.root.key, width, this.focus.join()].join(" ");
		if (key !== this.key_drawn) {
			this.drawn = this.layout(width);
			this.key_drawn = key;
			this.rows = this.drawn.reduce((most, box) => Math.max(most, box.frame.depth), 0) + 1;
			this.largest = differs ? Math.max(1, ...this.root.children.map(c => Math.abs(change_of(c))), ...this.drawn.slice(0, 5000)
				.map(box => box.frame.parent ? Math.abs(change_of(box.frame)) : 0)) : 1;
			this.tell_focus();
		}
		const height = this.rows * ROW, most = Math.round(Math.max(300, innerHeight * 0.72)), shown = Math.min(height, most);
		this.canvas.style.width = width + "px";
		this.canvas.style.height = shown + "px";
		this.room.style.height = height - shown + "px";
		this.canvas.width = width * ratio;
		this.canvas.height = shown * ratio;
		this.paint(ratio, shown);
		document.body.dataset.drawn = this.drawn.length;
		document.body.dataset.focus = this.focused.text;
	}

	paint(ratio, shown) {
		const pen = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
		const top = this.box.scrollTop, colors = {};
		for (const name of [...Object.keys(KINDS), "found", "frame-ink", "ink", "even", "card"])
			colors[name] = style.getPropertyValue("--" + name).trim();
		this.base = parseFloat(style.getPropertyValue("--base"));
		pen.scale(ratio, ratio);
		pen.font = "12px system-ui, sans-serif";
		pen.textBaseline = "middle";
		for (const box of this.drawn) {
			const y = box.frame.depth * ROW - top;
			if (y > -ROW && y < shown) this.paint_box(pen, box, y, colors);
		}
	}

	paint_box(pen, box, y, colors) {
		const w = Math.max(box.width - 1, 0.5), frame = box.frame, found = is_found(frame.name);
		pen.globalAlpha = box.faded ? 0.5 : state.pattern && !found && frame.parent ? 0.45 : 1;
		pen.fillStyle = found ? colors.found : differs ? this.color_of_change(frame, colors) : colors[kind_of(frame.name)];
		pen.fillRect(box.x, y, w, ROW - 1);
		if (!found && !differs && frame.name >= 0) {
			pen.fillStyle = "#fff"; // neighbours of one kind differ a little
			pen.globalAlpha *= frame.name % 4 * 0.06;
			pen.fillRect(box.x, y, w, ROW - 1);
		}
		pen.globalAlpha = 1;
		if (frame === this.cursor) {
			pen.strokeStyle = colors.ink;
			pen.lineWidth = 2;
			pen.strokeRect(box.x + 1, y + 1, Math.max(w - 2, 1), ROW - 3);
		}
		if (w < 22) return;
		const most = Math.floor((w - 6) / CHARACTER), all = frame.text;
		pen.fillStyle = found ? "#fff" : colors["frame-ink"];
		pen.fillText(all.length > most ? all.slice(0, Math.max(most - 1, 1)) + "\u2026" : all, box.x + 3, y + ROW / 2, w - 4);
	}

	/* Red is more, blue is less, the more so the larger the change is beside the largest. */
	color_of_change(frame, colors) {
		const change = change_of(frame), share = Math.sqrt(Math.min(Math.abs(change) / this.largest, 1));
		if (!change) return colors.even;
		const light = this.base + (58 - this.base) * share;
		return "hsl(" + (change > 0 ? 8 : 215) + " 80% " + light.toFixed(0) + "%)";
	}

	tell_focus() {
		const path = [];
		for (let at = this.focused; at; at = at.parent) path.unshift(at);
		this.crumbs.replaceChildren(...(path.length > 1 ? path : []).slice(-12).map(frame =>
			element("button", {text: frame.text, title: frame.text, onclick: () => this.zoom(frame)})));
		this.detail.textContent = describe(this.focused);
	}

	zoom(frame) {
		this.focus = frame.path;
		this.cursor = frame;
		this.draw();
		this.tell(frame);
	}

	tell(frame) {
		this.detail.textContent = describe(frame);
		this.item.textContent = describe(frame);
		this.item.setAttribute("aria-level", frame.depth + 1);
	}

	frame_at(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left;
		const depth = Math.floor((event.clientY - box.top + this.box.scrollTop) / ROW);
		return this.drawn.find(b => b.frame.depth === depth && b.x <= x && x < b.x + Math.max(b.width, 1));
	}

	/* Arrows move from frame to frame, Enter zooms in, Escape out. */
	key(event) {
		const at = this.cursor && this.drawn.some(b => b.frame === this.cursor) ? this.cursor : this.focused;
		const beside = step => at.parent && at.parent.children[at.parent.children.indexOf(at) + step];
		const moves = {ArrowUp: () => at.parent, ArrowDown: () => at.children[0], ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
			Home: () => this.root};
		if (event.key === "Enter") this.zoom(at);
		else if (moves[event.key]) this.move(moves[event.key]());
		else return;
		event.preventDefault();
		event.stopPropagation();
	}

	move(frame) {
		if (!frame || !(frame.weight || differs)) return;
		this.cursor = frame;
		const y = frame.depth * ROW;
		if (y < this.box.scrollTop) this.box.scrollTop = y;
		if (y + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = y + ROW - this.box.clientHeight;
		this.draw();
		this.tell(frame);
	}
}
