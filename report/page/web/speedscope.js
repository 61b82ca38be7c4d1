/* speedscope.js - the viewer speedscope, if the page has it: its keys and its looks are its own */

/* The graph as a file of speedscope's: each node with something of its own is a sample. */
function speedscope_file() {
	const profile = (name, unit, key) => {
		const own = new Float64Array(nodes.count), samples = [], weights = [];
		for (const row of rows) own[row.node] += Math.max(row.value[key], 0);
		for (let node = 1; node < nodes.count; node++) {
			if (!own[node]) continue;
			const path = [];
			for (let up = node; up > 0; up = nodes.parent[up]) path.unshift(nodes.name[up]);
			samples.push(path);
			weights.push(own[node]);
		}
		return {type: "sampled", name, unit, startValue: 0, samples, weights, endValue: weights.reduce((sum, weight) => sum + weight, 0)};
	};
	return {$schema: "https://www.speedscope.app/file-format-schema.json", name: data.title,
		shared: {frames: name_text.map((_, name) => ({name: function_name(name)}))},
		profiles: [profile("outstanding bytes", "bytes", "bytes"), profile("outstanding blocks", "none", "blocks")]};
}

const speedscope = {
	get is_there() { return by("speedscope").textContent !== ""; },
	make() {
		this.button = element("button", {id: "viewer", text: "speedscope", hidden: this.is_there ? undefined : ""});
		this.frame = element("iframe", {id: "frame", title: "speedscope", hidden: ""});
		by("flame").querySelector(".bar").append(this.button);
		by("flame").append(this.frame);
		this.button.addEventListener("click", () => this.frame.hidden ? this.open("left-heavy") : this.close());
	},
	open(view) {
		const frame = this.frame, script = text => "<script>" + text + "<\/script>";
		const bytes = new TextEncoder().encode(JSON.stringify(speedscope_file()));
		let text = "";
		for (const byte of bytes) text += String.fromCharCode(byte);
		const give = () => {
			const viewer = frame.contentWindow.speedscope;
			if (viewer) viewer.loadFileFromBase64("mleak.speedscope.json", btoa(text));
			else setTimeout(give, 20);
		};
		frame.onload = give;
		frame.srcdoc = "<!DOCTYPE html><meta charset=utf-8><body>" +
			script("location.hash = 'localProfilePath=mleak&view=" + view + "'") + script(by("speedscope").textContent);
		frame.hidden = false;
		for (const place of views.flame.places) place.hidden = true;
		this.button.textContent = "flame graph";
	},
	close() {
		this.frame.hidden = true;
		this.frame.srcdoc = "";
		this.button.textContent = "speedscope";
		views.flame.draw();
	},
};
