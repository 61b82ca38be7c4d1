/* kinds.js - what kind of code a function is: that is its colour */
const KINDS = {
	program: "the program", library: "libraries", allocator: "allocation functions",
	runtime: "start and language runtimes", script: "Python, PHP, Ruby, and code that the process generated", kernel: "the kernel", other: "processes and remarks",
};
const ALLOCATORS = new RegExp("^(__libc_|__GI_|_int_|je_|tc_|mi_|__)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|" +
	"posix_memalign|valloc|pvalloc|mmap|mmap64|mremap|sbrk|strdup|strndup|asprintf|vasprintf)(@.*)?$|^operator new|" +
	"^(kmalloc|kmem_cache_alloc|__kmalloc|alloc_pages|__alloc_pages|vmalloc|g_malloc|g_realloc|PyMem_|PyObject_Malloc)|" +
	"[a-z](m|c|re)alloc(_usable)?$|_alloc$");
const RUNTIMES = /^(ld-linux|ld-musl|libstdc\+\+|libgcc_s|libpython|libjvm|libnode|libruby|libperl|libphp|libgo|libc\+\+|libmleak)|^(python|php|node|java|ruby|perl)[\d.]*$/;
const STARTS = /^(_start|__libc_start_main.*|__libc_start_call_main|start_thread|clone3?|__clone3?|_dl_start_user|_dl_start)$/;

function find_kind(name) {
	const text = function_name(name), path = module_path(name), file = file_name(path);
	if (name < 0 || (text[0] === "[" && !path) || !path) return "other";
	if (/^\[(python|php|ruby|interpreted|generated code)\]$/.test(path)) return "script";
	if (ALLOCATORS.test(text)) return "allocator";
	if (path[0] === "[" || file === "vmlinux" || data.of_kernel || /\.ko(\.|$)/.test(file)) return "kernel";
	if (STARTS.test(text) || RUNTIMES.test(file)) return "runtime";
	return path === data.exe || (file && file === file_name(data.exe || "")) ? "program" : "library";
}

const kinds = new Map();

function kind_of(name) {
	if (!kinds.has(name)) kinds.set(name, find_kind(name));
	return kinds.get(name);
}

/* The list of colours below a graph. */
function legend() {
	const list = document.createElement("ul");
	list.className = "legend";
	list.setAttribute("aria-label", "colours");
	const add = (color, text) => {
		const item = list.appendChild(document.createElement("li")), box = item.appendChild(document.createElement("i"));
		box.style.background = color;
		item.append(text);
	};
	if (differs) {
		add("hsl(8 80% 58%)", "more than before");
		add("hsl(215 80% 58%)", "less than before");
		add("var(--even)", "the same");
	} else {
		for (const [kind, text] of Object.entries(KINDS)) add("var(--" + kind + ")", text);
	}
	add("var(--found)", "found by the search");
	return list;
}
