# report/machine/build.mk - what the formats for programs need beside C: pprof's messages, the pages

# The messages of pprof's format; and the page that print_html.c takes in as it is.
$(O)/report/machine/profile.pb-c.c: report/machine/profile.proto
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(O) $<

$(O)/report/machine/profile.pb-c.o: $(O)/report/machine/profile.pb-c.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/report/machine/print_pprof.o: $(O)/report/machine/profile.pb-c.c
$(O)/report/machine/print_html.o: report/machine/flame.html $(wildcard $(SPEEDSCOPE_JS))
$(O)/report/machine/print_html.o: ALL_CFLAGS += $(if $(wildcard $(SPEEDSCOPE_JS)),-DSPEEDSCOPE='"$(SPEEDSCOPE_JS)"')

# The viewer that pages of --format=html have in them, if it can be had; kept for all $(O).
SPEEDSCOPE     = 1.25.0
SPEEDSCOPE_SUM = 7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02
SPEEDSCOPE_JS ?= build/npm/speedscope-$(SPEEDSCOPE).js

## speedscope: fetch the viewer speedscope from npm; then build, and pages of --format=html have it in them
speedscope:
	$(Q)[ -f $(SPEEDSCOPE_JS) ] || report/machine/get_speedscope.sh $(SPEEDSCOPE) $(SPEEDSCOPE_SUM) $(SPEEDSCOPE_JS)

.PHONY: speedscope
