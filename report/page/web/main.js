/* main.js - the views, and what the address asks for */
const VIEWS = [["overview", "Overview"], ["flame", "Flame graph"], ["bottom", "Bottom-up"], ["growth", differs ? "Changes" : "Growth"], ["threads", "Threads"]];
const views = {};

/* Views are made when they are first shown. */
function make_view(name) {
	if (views[name]) return;
	if (name === "flame" || name === "bottom") views[name] = new TreeView(name, name === "bottom");
	else if (name === "growth") views[name] = differs ? changes_view : growth_view;
	else views[name] = name === "threads" ? threads_view : overview;
	if (name === "overview") make_view("growth");
	if (views[name].make) views[name].make();
	if (name === "flame") speedscope.make();
}

function redraw() {
	views[state.view].draw();
	draw_chart();
	document.body.dataset.view = state.view;
	document.body.dataset.ready = sums.version;
}

/* All is made anew: what is shown has changed. */
function refresh() {
	calculate();
	tell_matches();
	redraw();
}

function show_view(name) {
	state.view = name;
	make_view(name);
	hide_tip();
	for (const [other] of VIEWS) {
		by(other).hidden = other !== name;
		by(other + "-tab").setAttribute("aria-selected", String(other === name));
		by(other + "-tab").tabIndex = other === name ? 0 : -1;
	}
	redraw();
}

function tell_matches() {
	const found = sums.matched[state.unit];
	by("matched").textContent = !state.text ? "" : !state.pattern ? "no regular expression" :
		"matched: " + number(found) + " " + state.unit + (state.unit === "bytes" && found >= 1024 ? " (" + size_text(found) + ")" : "") + ", " +
		percent(found, sums[state.unit][0] + sums[state.unit + "_rest"]);
}

function search(text) {
	state.text = text;
	try { state.pattern = text ? new RegExp(text) : null; } catch (error) { state.pattern = null; }
	find_matches();
	tell_matches();
	redraw();
}

function make_tabs() {
	VIEWS.forEach(([name, text], i) => {
		const absent = name === "threads" && (differs || !data.threads.length);
		by("tabs").append(element("button", {role: "tab", id: name + "-tab", "aria-controls": name, "aria-keyshortcuts": String(i + 1), text,
			title: "key " + (i + 1), hidden: absent ? "" : undefined, onclick: () => show_view(name)}));
	});
	by("tabs").addEventListener("keydown", event => {
		const step = {ArrowLeft: -1, ArrowRight: 1}[event.key], tabs = [...by("tabs").children].filter(tab => !tab.hidden);
		if (!step) return;
		const tab = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
		tab.click();
		tab.focus();
		event.preventDefault();
	});
}

/* The address can say what to show: #view=NAME, #search=REGEX, #zoom=FUNCTION, #range=FROM,TO in seconds, #theme=dark or light,
 * #blocks, of a difference #before, and #speedscope=VIEW, its left-heavy or sandwich. */
function follow_address() {
	const wish = new URLSearchParams(location.hash.slice(1)), known = VIEWS.some(([name]) => name === wish.get("view"));
	set_theme(wish.get("theme") || (prefers_dark.matches ? "dark" : "light"));
	state.as_before = by("before").checked = differs && wish.has("before");
	state.unit = wish.has("blocks") ? "blocks" : "bytes";
	by("blocks").checked = wish.has("blocks");
	by("search").value = state.text = wish.get("search") || "";
	try { state.pattern = state.text ? new RegExp(state.text) : null; } catch (error) { state.pattern = null; }
	calculate();
	tell_matches();
	show_view(known ? wish.get("view") : ["zoom", "before", "speedscope"].some(key => wish.has(key)) ? "flame" : state.view);
	if (wish.has("range")) choose_range(...wish.get("range").split(",").map(Number));
	if (wish.has("zoom")) zoom_to(wish.get("zoom"));
	if (wish.has("speedscope") && speedscope.is_there) speedscope.open(wish.get("speedscope") === "sandwich" ? "sandwich" : "left-heavy");
}

function zoom_to(text) {
	const node = nodes.name.findIndex(name => function_name(name) === text), path = [];
	for (let up = node; up > 0; up = nodes.parent[up]) path.unshift(nodes.name[up]);
	views.flame.graph.zoom(frame_by_path(views.flame.graph.root, path));
}

function watch_page() {
	by("search").addEventListener("input", event => search(event.target.value));
	by("blocks").addEventListener("change", event => {
		state.unit = event.target.checked ? "blocks" : "bytes";
		refresh();
	});
	by("before").addEventListener("change", event => {
		state.as_before = event.target.checked;
		refresh();
	});
	by("thread-chip").addEventListener("click", () => choose_thread(-1));
	by("theme").addEventListener("click", () => set_theme(other_theme()));
	by("help").addEventListener("click", () => by("keys").showModal());
	prefers_dark.addEventListener("change", () => set_theme(prefers_dark.matches ? "dark" : "light"));
	document.addEventListener("keydown", on_key);
	window.addEventListener("resize", redraw);
	window.addEventListener("hashchange", follow_address);
	window.addEventListener("beforeprint", () => set_theme("light"));
	watch_chart();
}

by("side").hidden = !differs;
calculate();
fill_head();
make_tabs();
list_marks();
fill_keys();
make_view("overview");
follow_address();
watch_page();
