/* model.js - what is shown of each stack: by unit, time range, thread and search; and its sums in both trees */
const state = {view: "overview", unit: "bytes", range: null, thread: -1, pattern: null, text: "", as_before: false, table: {}};

const until = (data.until || []).map(us => us / 1e6); // ends of the slices, in seconds
const slices = until.length;

/* What was outstanding of all stacks at the end of each slice. */
const total = (() => {
	const from = new Unpack(data.total), sum = {bytes: [], blocks: []}, now = {bytes: 0, blocks: 0};
	for (let i = 0; i < slices; i++) {
		now.bytes += from.signed();
		now.blocks += from.signed();
		sum.bytes.push(now.bytes);
		sum.blocks.push(now.blocks);
	}
	return sum;
})();

/* Of each stack: every how many slices it is told, and the slices with what was outstanding at their ends. */
const coarse = {rows: 0, none: 0};
(() => {
	const from = new Unpack(data.times);
	if (!slices) return;
	for (const row of rows) {
		const times = {step: from.number(), slice: [], bytes: [], blocks: []};
		let slice = 0, bytes = 0, blocks = 0;
		for (let left = times.step ? from.number() : 0; left > 0; left--) {
			times.slice.push(slice += from.number());
			times.bytes.push(bytes += from.signed());
			times.blocks.push(blocks += from.signed());
		}
		row.times = times;
		coarse.rows += times.step > 1;
		coarse.none += !times.step;
	}
})();

/* The last entry of @times that is not behind @slice. */
function entry_at(times, slice, unit) {
	let low = 0, high = times.slice.length;
	while (low < high) {
		const middle = low + high >> 1;
		if (times.slice[middle] <= slice) low = middle + 1;
		else high = middle;
	}
	return low ? times[unit][low - 1] : 0;
}

/* What was outstanding of @row at the end of @slice; -1 is before all. */
function outstanding_at(row, slice, unit) {
	const times = row.times;
	if (slice < 0) return 0;
	if (!times || slice >= slices - 1) return row[unit];
	if (times.step === 1) return entry_at(times, slice, unit);
	if (times.step > 1) {
		const at = (slice + 1) / times.step, low = Math.floor(at) - 1;
		const from = low < 0 ? 0 : entry_at(times, low, unit);
		return from + (entry_at(times, low + 1, unit) - from) * (at - Math.floor(at));
	}
	const share = (until[slice] - row.first) / Math.max(row.last - row.first, 1e-9);
	return row[unit] * Math.min(Math.max(share, 0), 1);
}

/* The share of a thread in a stack; of other moments than the end it is taken to be the same. */
function share_of_thread(row, unit) {
	const taker = row.takers.find(taker => taker.thread === state.thread);
	return taker && row[unit] ? taker[unit] / row[unit] : 0;
}

function value_of(row, unit) {
	if (differs) return state.as_before ? row.before[unit] : row[unit];
	const value = state.range ? outstanding_at(row, state.range[1], unit) - outstanding_at(row, state.range[0] - 1, unit) :
		row[unit];
	return state.thread < 0 ? value : value * share_of_thread(row, unit);
}

/* What the page leaves out, of one unit. */
function rest_of(unit) {
	if (differs) return state.as_before ? data.rest.before[unit] : data.rest.after[unit];
	if (state.thread >= 0) return 0;
	if (!state.range) return data.rest[unit];
	const rest = slice => slice < 0 ? 0 : rows.reduce((left, row) => left - outstanding_at(row, slice, unit), total[unit][slice]);
	const net = rest(state.range[1]) - rest(state.range[0] - 1);
	return net > total[unit][state.range[1]] / 1e6 && (data.rest.stacks || !coarse.rows + coarse.none) ? net : 0;
}

/* Sums by node: those of other units and sides are for tips. */
const sums = {version: 0, shrunk: {bytes: 0, blocks: 0}};

function sum_of(values) {
	const sum = new Float64Array(nodes.count);
	for (let i = 0; i < rows.length; i++) sum[rows[i].node] += values(rows[i]);
	for (let node = nodes.count - 1; node > 0; node--) sum[nodes.parent[node]] += sum[node];
	return sum;
}

function calculate() {
	for (const unit of ["bytes", "blocks"]) {
		sums.shrunk[unit] = 0;
		for (const row of rows) {
			row.value = row.value || {};
			row.value[unit] = value_of(row, unit);
			if (row.value[unit] < 0) sums.shrunk[unit] -= row.value[unit];
		}
		sums[unit] = sum_of(row => Math.max(row.value[unit], 0));
		sums[unit + "_rest"] = Math.max(rest_of(unit), 0);
		if (differs) {
			sums[unit + "_before"] = sum_of(row => row.before[unit]);
			sums[unit + "_after"] = sum_of(row => row[unit]);
		}
	}
	find_matches();
	sums.version++;
}

/* Which nodes are found, or below one that is, and what that sums up to. */
function find_matches() {
	const hit = new Uint8Array(nodes.count), found = new Map();
	sums.matched = {bytes: 0, blocks: 0};
	sums.hit = state.pattern ? hit : null;
	if (!state.pattern) return;
	for (let node = 1; node < nodes.count; node++)
		hit[node] = hit[nodes.parent[node]] || is_found(nodes.name[node], found) ? 1 : 0;
	for (const row of rows)
		for (const unit of ["bytes", "blocks"])
			if (hit[row.node]) sums.matched[unit] += Math.max(row.value[unit], 0);
}

function is_found(name, known) {
	if (!state.pattern || name < 0) return false;
	if (known && known.has(name)) return known.get(name);
	const found = state.pattern.test(function_name(name));
	if (known) known.set(name, found);
	return found;
}

/* A function with its callers or callees: a node of either tree, made when it is needed. */
class Frame {
	constructor(parent, name) {
		this.parent = parent;
		this.name = name;
		this.depth = parent ? parent.depth + 1 : 0;
		this.line = 0;
		this.bytes = this.blocks = 0;
		this.kept = null;
	}
	get text() { return function_name(this.name) + times_text(this.nodes); }
	get weight() { return this[state.unit]; }
	get children() {
		if (!this.kept) {
			this.kept = this.make_children();
			this.kept.sort((a, b) => b.weight - a.weight || (differs ? Math.abs(change_of(b)) - Math.abs(change_of(a)) : 0));
		}
		return this.kept;
	}
	/* Those that it stands for. */
	get nodes() { return []; }
	/* What identifies it, when the tree was made anew. */
	get path() { return this.parent ? [...this.parent.path, this.name] : []; }
}

function change_of(frame) { return frame.after[state.unit] - frame.before[state.unit]; }

function rest_frame(parent) {
	const frame = new Frame(parent, REST);
	frame.make_children = () => [];
	frame.bytes = sums.bytes_rest;
	frame.blocks = sums.blocks_rest;
	if (differs) Object.assign(frame, {before: data.rest.before, after: data.rest.after});
	return frame;
}

/* Callers first. */
class Call extends Frame {
	constructor(parent, node) {
		super(parent, nodes.name[node]);
		this.node = node;
		this.line = nodes.line[node];
		for (const unit of ["bytes", "blocks"]) this[unit] = sums[unit][node] + (node ? 0 : sums[unit + "_rest"]);
		if (!differs) return;
		this.before = {bytes: sums.bytes_before[node], blocks: sums.blocks_before[node]};
		this.after = {bytes: sums.bytes_after[node], blocks: sums.blocks_after[node]};
	}
	get nodes() { return [this.node]; }
	make_children() {
		const all = [];
		for (let node = nodes.first[this.node]; node >= 0; node = nodes.next[node])
			if (sums.bytes[node] || sums.blocks[node] || differs) all.push(new Call(this, node));
		if (!this.node && (sums.bytes_rest || sums.blocks_rest)) all.push(rest_frame(this));
		return all;
	}
}

/* Callees first: the stacks that end here, and of each the node that is next. */
class Caller extends Frame {
	constructor(parent, name) {
		super(parent, name);
		this.stacks = [];
		this.at = [];
		if (differs) {
			this.before = {bytes: 0, blocks: 0};
			this.after = {bytes: 0, blocks: 0};
		}
	}
	add(row, node) {
		if (!this.at.length) this.line = nodes.line[node];
		this.stacks.push(row);
		this.at.push(node);
		for (const unit of ["bytes", "blocks"]) {
			this[unit] += Math.max(row.value[unit], 0);
			if (!differs) continue;
			this.before[unit] += row.before[unit];
			this.after[unit] += row[unit];
		}
	}
	get nodes() { return this.parent ? this.at : []; }
	make_children() {
		const all = new Map();
		this.stacks.forEach((row, i) => {
			const node = this.parent ? nodes.parent[this.at[i]] : this.at[i], name = nodes.name[node];
			if (node <= 0 || (!differs && row.value.bytes <= 0 && row.value.blocks <= 0)) return;
			if (!all.has(name)) all.set(name, new Caller(this, name));
			all.get(name).add(row, node);
		});
		if (!this.parent && (sums.bytes_rest || sums.blocks_rest)) return [...all.values(), rest_frame(this)];
		return [...all.values()];
	}
}

const roots = {};

/* The root of the tree "flame" or "bottom", as the state wants it. */
function root_of(kind) {
	const key = sums.version + state.unit;
	if (!roots[kind] || roots[kind].key !== key) {
		const root = kind === "flame" ? new Call(null, 0) : new Caller(null, ALL);
		if (kind === "bottom") {
			for (const row of rows) root.add(row, row.node);
			root.bytes += sums.bytes_rest;
			root.blocks += sums.blocks_rest;
		}
		root.key = key;
		roots[kind] = root;
	}
	return roots[kind];
}

/* The frame that has @path below @root, or the last one of it that is there. */
function frame_by_path(root, path) {
	let at = root;
	for (const name of path) {
		const child = at.children.find(child => child.name === name);
		if (!child) break;
		at = child;
	}
	return at;
}
