/* numbers.js - numbers, sizes and times as people read them */
const number = n => Math.round(n).toLocaleString("en-US");
const blocks_text = n => number(n) + (Math.round(n) === 1 ? " block" : " blocks");
const signed = n => (n < 0 ? "-" : "+") + number(Math.abs(n));
const percent = (part, of) => (of ? 100 * part / of : 0).toFixed(1) + " %";

/* 1,234,567 as "1.18 MiB". */
function size_text(bytes) {
	const sign = bytes < 0 ? "-" : "", units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let size = Math.abs(bytes), at = 0;
	for (; size >= 1024 && at < units.length - 1; at++) size /= 1024;
	return sign + (at ? size.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0) : number(size)) + " " + units[at];
}

/* Of the unit that the page shows. */
function amount_text(n, unit) { return unit === "blocks" ? blocks_text(n) : size_text(n); }

function change_text(n, unit) { return (n > 0 ? "+" : "") + (unit === "blocks" ? number(n) : size_text(n)); }

/* Bytes a minute. */
function rate_text(rate) {
	const hour = rate * 60;
	return (hour >= 0 ? "+" : "-") + (Math.abs(hour) < 1048576 / 20 ? size_text(Math.abs(hour)) :
		(Math.abs(hour) / 1048576).toFixed(1) + " MiB") + "/h";
}

/* Seconds. */
function time_text(s) {
	if (s >= 7200) return (s / 3600).toFixed(1) + " h";
	if (s >= 120) return (s / 60).toFixed(1) + " min";
	if (s && s < 0.001) return +(s * 1e6).toFixed(1) + " \u00B5s";
	return s >= 0.1 || !s ? +s.toFixed(2) + " s" : +(s * 1000).toFixed(2) + " ms";
}
