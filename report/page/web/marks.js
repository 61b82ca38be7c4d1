/* marks.js - moments that were marked while recording: lines in the chart, and a list */
const marks = (data.marks || []).map((mark, i) => ({s: mark.at / 1e6, number: i + 1, kind: mark.kind, text: mark.text}));
const MARK_NEAR = 5; // pixels from a mark's line to the pointer that points at it

const mark_words = mark => mark.text || (mark.kind === "signal" ? "by SIGUSR2" : "without a text");
const mark_text = mark => "mark " + mark.number + " at " + time_text(mark.s) + ": " + mark_words(mark);

/* Its tooltip is also that of the line itself, for who cannot point. */
function draw_marks(picture) {
	for (const mark of marks) {
		if (mark.s > chart_end()) continue;
		const group = svg("g", {class: "mark", "data-mark": mark.number, role: "img", "aria-label": mark_text(mark)}, picture);
		const x = chart_x(mark.s);
		svg("line", {x1: x, x2: x, y1: chart.top, y2: chart.height - chart.bottom}, group);
		svg("path", {d: "M" + (x - 4) + " " + chart.top + "h8l-4 6z"}, group);
		svg("title", {}, group).textContent = mark_text(mark);
	}
}

/* Lines for the tip at @x, pixels in the chart: the marks there. */
const marks_near = x => marks.filter(mark => mark.s <= chart_end() && Math.abs(chart_x(mark.s) - x) <= MARK_NEAR).map(mark_text);

/* From a mark to the next one, or to the end. */
function choose_mark(mark) {
	const next = marks.find(other => other.s > mark.s);
	choose_range(Math.min(mark.s, chart_end()), next ? Math.min(next.s, chart_end()) : chart_end());
}

function list_marks() {
	const box = by("marks");
	if (!marks.length) return;
	box.hidden = false;
	box.querySelector("summary").textContent = number(marks.length) + (marks.length === 1 ? " mark" : " marks") +
		(data.marks_left ? "; " + number(data.marks_left) + " more are in the trace" : "");
	box.querySelector("ol").replaceChildren(...marks.map(mark => {
		const line = element("li", {}), button = element("button", {text: time_text(mark.s), title: "show what grew from this mark to the next"});
		button.addEventListener("click", () => choose_mark(mark));
		line.append(button, " " + mark_words(mark));
		return line;
	}));
}
