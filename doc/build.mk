# doc/build.mk - manual pages, installing, and Debian packages

# Where things are installed; DESTDIR goes before all of it.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR     ?= $(PREFIX)/share/doc/mleak
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
MAN         = $(patsubst doc/man/%.scd,$(O)/man/%,$(wildcard doc/man/*.scd))
# Documents, without the folders doc/ and .github/ where they are installed; pictures.
INSTALLED_DOCS = README.md .github/SECURITY.md $(wildcard doc/*.md doc/decisions/*.md)
INSTALLED_FILES = $(patsubst .github/%,%,$(INSTALLED_DOCS:doc/%=%)) LICENSE \
		  $(patsubst doc/%,%,$(wildcard doc/images/*))

DEB_PACK  = dpkg-dev binutils xz-utils
DEB_CHECK = debootstrap lintian util-linux

## man: build the manual pages, with the options that the program itself lists
man: $(MAN)

# A page has the date of its source, or that which a package's build asks for.
$(O)/man/%.1: doc/man/%.1.scd doc/man/options.awk $(O)/mleak
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)case $* in \
		mleak-*) $(O)/mleak --list-options $(*:mleak-%=%) > $(@:.1=.options) && \
			awk -F'\t' -f doc/man/options.awk $(@:.1=.options) $< > $(@:.1=.scd) ;; \
		*) cp $< $(@:.1=.scd) ;; \
	esac
	$(Q)SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)} $(SCDOC) < $(@:.1=.scd) > $@

## install: install mleak, libdwunw, headers and documents below PREFIX=/usr/local (DESTDIR= before it)
install: all man libdwunw
	$(Q)install -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBDIR)/pkgconfig $(INCLUDEDIR) \
		$(DOCDIR)/decisions $(DOCDIR)/images \
		$(MANDIR)/man1 $(BASHDIR) $(ZSHDIR))
	$(Q)install -m 755 $(O)/mleak $(DESTDIR)$(BINDIR)
	$(Q)install -m 644 $(O)/libdwunw.a $(O)/libdwunw.so.0 $(DESTDIR)$(LIBDIR)
	$(Q)install -D -m 644 -t $(DESTDIR)$(LIBDIR)/mleak $(O)/libmleak-preload.so $(O)/libmleak-wrap.a
	$(Q)ln -sf libdwunw.so.0 $(DESTDIR)$(LIBDIR)/libdwunw.so
	$(Q)install -m 644 $(O)/dwunw.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(Q)install -m 644 $(INSTALLED_HEADERS) $(DESTDIR)$(INCLUDEDIR)
	$(Q)for from in $(INSTALLED_DOCS); do \
		to=$${from#doc/}; \
		sed -E -f doc/install.sed $$from | \
			install -m 644 /dev/stdin $(DESTDIR)$(DOCDIR)/$${to#.github/} || exit 1; \
	done
	$(Q)install -m 644 LICENSE $(DESTDIR)$(DOCDIR)
	$(Q)install -m 644 -t $(DESTDIR)$(DOCDIR)/images $(wildcard doc/images/*)
	$(Q)install -m 644 $(MAN) $(DESTDIR)$(MANDIR)/man1
	$(Q)install -m 644 doc/completion/mleak.bash $(DESTDIR)$(BASHDIR)/mleak
	$(Q)install -m 644 doc/completion/_mleak $(DESTDIR)$(ZSHDIR)

## uninstall: remove what install put there (the same PREFIX= and DESTDIR=)
uninstall:
	$(Q)rm -f $(DESTDIR)$(BINDIR)/mleak $(addprefix $(DESTDIR)$(LIBDIR)/,libdwunw.a libdwunw.so \
		libdwunw.so.0 mleak/libmleak-preload.so mleak/libmleak-wrap.a pkgconfig/dwunw.pc) \
		$(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(INSTALLED_HEADERS))) \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(INSTALLED_FILES)) \
		$(addprefix $(DESTDIR)$(MANDIR)/man1/,$(notdir $(MAN))) \
		$(DESTDIR)$(BASHDIR)/mleak $(DESTDIR)$(ZSHDIR)/_mleak
	$(Q)for dir in $(addprefix $(DESTDIR)$(DOCDIR),/decisions /images) $(DESTDIR)$(DOCDIR) $(DESTDIR)$(LIBDIR)/mleak; do \
		if [ -d $$dir ]; then rmdir --ignore-fail-on-non-empty $$dir; fi; done

# Debian packages
VERSION     = $(shell sed -n 's/^\#define MLEAK_VERSION "\(.*\)"/\1/p' mleak.h)
DEB_OUT    ?= $(O)/deb

## deb: build Debian packages (mleak, libdwunw0, libdwunw-dev) into build/deb, from what install installs
deb:
	$(Q)$(SUBMAKE) deps DEB='$(DEB_BUILD) $(DEB_PACK)'
	$(Q)rm -rf $(DEB_OUT) && mkdir -p $(DEB_OUT)
	$(Q)$(SUBMAKE) install DESTDIR=$(abspath $(DEB_OUT))/root PREFIX=/usr \
		LIBDIR=/usr/lib/$$($(CC) -print-multiarch)
	$(call say,DEB,$(DEB_OUT))
	$(Q)doc/deb/build.sh $(DEB_OUT)/root $(VERSION) $(DEB_OUT)
	$(Q)rm -rf $(DEB_OUT)/root

## check-deb: install the packages into a new Debian system, record and report there, and remove them
check-deb: deb
	$(Q)$(SUBMAKE) deps DEB='$(DEB_CHECK)'
	$(Q)lintian --fail-on error $(DEB_OUT)/*.deb
	$(Q)tests/deb/chroot.sh $(DEB_OUT)

## check-container: demo and test in a new Debian system without privileges, as its root and as an ordinary user
check-container:
	$(Q)$(SUBMAKE) deps DEB='$(DEB_CHECK)'
	$(Q)tests/container/container.sh

.PHONY: deb check-deb check-container
.PHONY: libdwunw man install uninstall FORCE
