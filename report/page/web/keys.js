/* keys.js - keys, their overlay, and the colour scheme */
const KEYS = [
	["1 \u2026 5", "overview, flame graph, bottom-up, growth, threads"], ["/", "search"], ["Esc", "leave the search, zoom out, then all of the time"],
	["\u2190 \u2191 \u2192 \u2193", "from frame to frame, or from row to row"], ["Enter", "zoom into the frame, open the row"], ["Home", "the whole graph"],
	["b", "bytes or blocks"], ["t", "graph or table"], ["d", "dark or light colours"], ["?", "this list"],
];

function fill_keys() {
	const list = element("dl", {});
	for (const [key, text] of KEYS) list.append(element("dt", {}, element("kbd", {text: key})), element("dd", {text}));
	by("keys").append(element("h2", {text: "Keys"}), list,
		element("p", {class_name: "note", text: "A click on a frame shows it and what is below it as wide as the page; the names above it lead back. " +
			"A click on a stack's line opens all of it. Dragging over the chart chooses a time for all views."}),
		element("button", {text: "close", onclick: () => by("keys").close()}));
}

function set_theme(theme) {
	document.documentElement.dataset.theme = theme;
	if (views.flame) redraw();
}

const prefers_dark = matchMedia("(prefers-color-scheme: dark)");
const other_theme = () => document.documentElement.dataset.theme === "dark" ? "light" : "dark";

function toggle_unit() {
	by("blocks").checked = state.unit === "bytes";
	by("blocks").dispatchEvent(new Event("change"));
}

function escape() {
	if (document.activeElement === by("search") || state.pattern) {
		by("search").value = "";
		by("search").blur();
		search("");
	} else if (views[state.view].graph && views[state.view].graph.focus.length) {
		views[state.view].graph.zoom(views[state.view].graph.root);
	} else {
		choose_range(null);
	}
}

function on_key(event) {
	const typing = event.target.matches("input[type=search], input[type=number]");
	if (event.ctrlKey || event.metaKey || event.altKey || by("keys").open) return;
	if (event.key === "Escape") escape();
	if (typing) return;
	const view = VIEWS[+event.key - 1], tree = views[state.view];
	if (view && !by(view[0] + "-tab").hidden) show_view(view[0]);
	else if (event.key === "/") by("search").focus();
	else if (event.key === "?") by("keys").showModal();
	else if (event.key === "d") set_theme(other_theme());
	else if (event.key === "b") toggle_unit();
	else if (event.key === "t" && tree.graph) {
		tree.as_table = !tree.as_table;
		tree.draw();
	} else return;
	event.preventDefault();
}
