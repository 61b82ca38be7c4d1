/* data.js - what is in the page: texts, modules, lines, nodes of the call tree, stacks, series */
"use strict";
const by = id => document.getElementById(id);
const data = JSON.parse(by("data").textContent);
const differs = data.kind === "diff";

/* Numbers of page/pack.h: groups of five bits, the lowest first. */
class Unpack {
	constructor(text) {
		this.text = text || "";
		this.at = 0;
	}
	get more() { return this.at < this.text.length; }
	number() {
		let sum = 0, scale = 1;
		while (this.at < this.text.length) {
			const digit = Unpack.digits[this.text.charCodeAt(this.at++) & 127];
			sum += (digit & 31) * scale;
			if (digit < 32) break;
			scale *= 32;
		}
		return sum;
	}
	signed() {
		const twice = this.number();
		return twice % 2 ? -(twice + 1) / 2 : twice / 2;
	}
}
Unpack.digits = new Uint8Array(128);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].forEach((c, i) => {
	Unpack.digits[c.charCodeAt(0)] = i;
});

/* Pairs of numbers as two arrays. */
function unpack_pairs(text) {
	const first = [], second = [], from = new Unpack(text);
	while (from.more) {
		first.push(from.number());
		second.push(from.number());
	}
	return [first, second];
}

const REST = -2, ALL = -1; // names of what is no function
const [name_text, name_module] = unpack_pairs(data.names);
const [line_file, line_number] = unpack_pairs(data.lines);

/* The call tree in the order of a walk; node 0 is above all stacks. */
const nodes = (() => {
	const parent = [-1], name = [ALL], line = [0], depth = [0];
	const from = new Unpack(data.nodes);
	while (from.more) {
		let above = parent.length - 1;
		for (let up = from.number(); up > 0 && above > 0; up--) above = parent[above];
		parent.push(above);
		depth.push(depth[above] + 1);
		name.push(from.number());
		line.push(from.number());
	}
	const count = parent.length, first = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
	for (let i = count - 1; i > 0; i--) {
		next[i] = first[parent[i]];
		first[parent[i]] = i;
	}
	return {count, parent, name, line, depth, first, next};
})();

/* How often a call is repeated, by node: the least and the most. */
const repeats = (() => {
	const all = new Map(), from = new Unpack(data.repeats);
	while (from.more) all.set(from.number(), [from.number(), from.number()]);
	return all;
})();

/* " × 3", or " × 2-1,021", of calls that are repeated at some of @at; else nothing. */
function times_text(at) {
	if (!repeats.size) return "";
	let least = Infinity, most = 1;
	for (const node of at) {
		const times = repeats.get(node) || [1, 1];
		least = Math.min(least, times[0]);
		most = Math.max(most, times[1]);
	}
	if (most < 2) return "";
	return " \u00d7 " + (least < most ? number(least) + "-" : "") + number(most);
}

function function_name(name) {
	return name === ALL ? "all" : name === REST ? "[stacks that this page leaves out]" : data.texts[name_text[name]];
}

function module_path(name) { return name < 0 ? "" : data.modules[name_module[name]] || ""; }

function file_name(path) { return path.slice(path.lastIndexOf("/") + 1); }

/* "file.c:12", or "" when it is not known. */
function line_text(line) {
	const number = Math.floor(line_number[line] / 2);
	return number ? data.files[line_file[line]] + ":" + number : "";
}

function is_inlined(line) { return line_number[line] % 2 === 1; }

function read_takers(from, row) {
	const count = from.number();
	for (let i = 0; i < count; i++) {
		const thread = from.number();
		row.takers.push(count === 1 ? {thread, bytes: row.bytes, blocks: row.blocks} :
			{thread, bytes: from.number(), blocks: from.number()});
		if (count === 1) break;
	}
}

const SHAPES = Object.keys(data.shapes || {});

function read_history(from, row) {
	Object.assign(row, {allocated: from.number(), allocations: from.number(), first: from.number() / 1e6});
	row.last = row.first + from.number() / 1e6;
	const shape = from.number();
	if (shape) {
		row.shape = SHAPES[shape - 1];
		Object.assign(row, {rate: from.signed(), low: from.signed(), high: from.signed(), lifetime: from.number(),
			group: from.number()});
	}
	row.takers = [];
	read_takers(from, row);
	if (data.reach) row.lost = {bytes: from.number(), blocks: from.number()};
}

/* Each stack: the node of its innermost frame, and what is outstanding. */
const rows = (() => {
	const all = [], from = new Unpack(data.rows);
	for (let i = 0; i < data.row_count; i++) {
		const row = {number: i, node: from.number(), others: []};
		for (let others = from.number(); others > 0; others--)
			row.others[from.number()] = from.number();
		Object.assign(row, {bytes: from.number(), blocks: from.number()});
		if (differs)
			Object.assign(row, {before: {bytes: from.number(), blocks: from.number()}, change: data.changes[i]});
		else
			read_history(from, row);
		all.push(row);
	}
	return all;
})();

/* The frames of a stack, innermost first: numbers of names and lines. */
function frames_of(row) {
	const frames = [];
	for (let node = row.node, i = 0; node > 0; node = nodes.parent[node], i++)
		frames.push({name: nodes.name[node], line: i in row.others ? row.others[i] : nodes.line[node], times: times_text([node])});
	return frames;
}

/* The innermost functions in one line. */
function short_stack(row, count) {
	const names = [];
	let node = row.node;
	for (; node > 0 && names.length < count; node = nodes.parent[node])
		names.push(function_name(nodes.name[node]) + times_text([node]));
	return names.join(" \u2039 ") + (node > 0 ? " \u2039 \u2026" : "");
}
