# unwind/build.mk - libdwunw, the unwinder as a library for other programs

DWUNW_VERSION = 0.1
DWUNW_LIBS  = $(filter-out -lbpf -lZydis -lprotobuf-c -lncursesw -ltinfo,$(LDLIBS))
DWUNW_OBJ   = $(patsubst %.c,$(O)/pic/%.o,$(call files_of,unwind,*.c))
DWUNW_FILES = $(O)/libdwunw.a $(O)/libdwunw.so.0 $(O)/dwunw.pc

# The hot loop keeps its registers apart: packed into vectors they wait for each other.
$(O)/unwind/walk/fast.o: ALL_CFLAGS += -fno-tree-slp-vectorize

## libdwunw: build the unwinder's library, static and shared, and its pkg-config file
libdwunw: $(DWUNW_FILES)

$(O)/pic/%.o: %.c
	$(call say,CC,$< (PIC))
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -c -o $@ $<

$(O)/libdwunw.a: $(DWUNW_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Exported is what dwunw.h declares, and nothing else.
$(O)/dwunw.map: unwind/dwunw.h $(INSTALLED_HEADERS)
	@mkdir -p $(@D)
	$(Q)( echo 'DWUNW_0 { global:'; $(CC) -E -P $< | tr '\n' ' ' | sed 's/typedef [^;]*;//g' | \
			grep -oE '\bdwunw_[a-z0-9_]+\(' | tr '(' ';' | sort -u; \
		echo 'local: *; };' ) > $@

$(O)/libdwunw.so.0: $(DWUNW_OBJ) $(O)/dwunw.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(O)/dwunw.map \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--as-needed -o $@ $(DWUNW_OBJ) $(DWUNW_LIBS)

# Made anew each time: it holds the paths that were asked for.
$(O)/dwunw.pc: unwind/dwunw.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(DWUNW_VERSION)|' -e 's|@LIBS@|$(DWUNW_LIBS)|' $< > $@

.PHONY: libdwunw
