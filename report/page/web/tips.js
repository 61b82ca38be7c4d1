/* tips.js - what is said of a frame, and the tooltip at the pointer */
function describe(frame) {
	if (differs)
		return frame.text + ": " + signed(frame.after.bytes - frame.before.bytes) + " bytes (" + number(frame.before.bytes) +
			" before, " + number(frame.after.bytes) + " after), " + signed(frame.after.blocks - frame.before.blocks) + " blocks";
	let root = frame;
	while (root.parent) root = root.parent;
	return frame.text + ": " + number(frame.bytes) + " bytes (" + (root.bytes ? 100 * frame.bytes / root.bytes : 0).toFixed(2) +
		" %), " + blocks_text(frame.blocks);
}

/* The lines of a tip: the first is a heading. */
function tip_lines(frame) {
	const lines = [frame.text + (is_inlined(frame.line) ? " (inlined)" : "")];
	const module = module_path(frame.name), place = line_text(frame.line);
	if (differs) {
		lines.push(change_text(frame.after.bytes - frame.before.bytes, "bytes") + ": " + size_text(frame.before.bytes) +
			" before, " + size_text(frame.after.bytes) + " after");
		lines.push(signed(frame.after.blocks - frame.before.blocks) + " blocks, " + signed(frame.after.bytes - frame.before.bytes) +
			" bytes");
	} else {
		lines.push(size_text(frame.bytes) + " (" + number(frame.bytes) + " bytes) in " + blocks_text(frame.blocks));
		let root = frame;
		while (root.parent) root = root.parent;
		lines.push(percent(frame.weight, root.weight) + " of all" +
			(frame.parent && frame.parent.parent ? ", " + percent(frame.weight, frame.parent.weight) + " of the one above" : ""));
	}
	if (place) lines.push(place);
	if (module) lines.push(module + " (" + KINDS[kind_of(frame.name)] + ")");
	return lines;
}

function show_tip(lines, x, y) {
	const tip = by("tip");
	tip.textContent = "";
	lines.forEach((line, i) => { tip.appendChild(document.createElement(i ? "small" : "b")).textContent = line; });
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
	tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
}

function hide_tip() { by("tip").hidden = true; }

/* An element with its class, text and children. */
function element(name, options, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(options || {})) {
		if (key === "text") made.textContent = value;
		else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
		else if (value !== undefined && value !== false) made.setAttribute(key === "class_name" ? "class" : key, value);
	}
	made.append(...children);
	return made;
}
