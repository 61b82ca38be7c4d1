# samples/build.mk - programs that leak, for the demo and the tests

SAMPLES     = $(basename $(notdir $(filter-out samples/plugin.c samples/twin_%.c, \
			$(wildcard samples/*.c samples/*.cc)))) plugin.so twin_a.so twin_b.so
SAMPLE_BINS = $(SAMPLES:%=$(O)/samples/%)

## samples: build the leaking samples, stripped, with separate debug files
samples: $(SAMPLE_BINS)

# Samples are what users have: optimised, without frame pointers, stripped; never sanitized.
SAMPLE_FLAGS = -O2 -fomit-frame-pointer -g -Wall -Wextra -pthread

define split_debug
	$(Q)cd $(@D) && $(OBJCOPY) --only-keep-debug $(@F) $(@F).debug && $(STRIP) $(@F) && \
		$(OBJCOPY) --add-gnu-debuglink=$(@F).debug $(@F)
endef

$(O)/samples/%.so: samples/%.c $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -shared -fPIC -o $@ $<
	$(split_debug)

$(O)/samples/%: samples/%.c $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -o $@ $< -ldl
	$(split_debug)

$(O)/samples/%: samples/%.cc $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(SAMPLE_FLAGS) -o $@ $<
	$(split_debug)

.PHONY: samples
