# report/page/build.mk - the page of --format=html: its sources, and the viewer that is in it

# The viewer that pages of --format=html have in them, if it can be had; kept for all $(O).
SPEEDSCOPE     = 1.25.0
SPEEDSCOPE_SUM = 7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02
SPEEDSCOPE_JS ?= build/npm/speedscope-$(SPEEDSCOPE).js

# One after the other they are the page; page_write.c takes it in as it is.
PAGE_PARTS = head.html style.css views.css body.html data.js numbers.js kinds.js model.js tips.js \
	     chart.js marks.js graph.js rows.js tree.js overview.js growth.js threads.js changes.js \
	     speedscope.js keys.js main.js end.html
PAGE_WEB   = $(PAGE_PARTS:%=report/page/web/%)
PAGE       = $(O)/report/page/page.html

$(PAGE): $(PAGE_WEB) report/page/build.mk
	$(call say,CAT,$@)
	@mkdir -p $(@D)
	$(Q)cat $(PAGE_WEB) > $@

$(O)/report/page/page_write.o: $(PAGE) $(wildcard $(SPEEDSCOPE_JS))
$(O)/report/page/page_write.o: ALL_CFLAGS += -DPAGE='"$(PAGE)"' \
	$(if $(wildcard $(SPEEDSCOPE_JS)),-DSPEEDSCOPE='"$(SPEEDSCOPE_JS)"')

## speedscope: fetch the viewer speedscope from npm; then build, and pages of --format=html have it in them
speedscope:
	$(Q)[ -f $(SPEEDSCOPE_JS) ] || report/page/get_speedscope.sh $(SPEEDSCOPE) $(SPEEDSCOPE_SUM) $(SPEEDSCOPE_JS)

.PHONY: speedscope
