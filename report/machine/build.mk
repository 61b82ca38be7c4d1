# report/machine/build.mk - what the formats for programs need beside C: pprof's messages
$(O)/report/machine/profile.pb-c.c: report/machine/profile.proto
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(O) $<

$(O)/report/machine/profile.pb-c.o: $(O)/report/machine/profile.pb-c.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/report/machine/print_pprof.o: $(O)/report/machine/profile.pb-c.c
