# Assay: build, check, install, and the chains a user runs.  One file, no
# recursion; a new folder under lib/, tools/ or tests/ is found by itself.
# `make help` prints the lines that begin with "#:".

# Debian packages that building, testing and the man pages need.
PACKAGES := gcc libc6-dev make pkg-config libjansson-dev libssl-dev \
            libarchive-dev libzstd-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev \
            libwebp-dev libpcre2-dev perl python3 scdoc mandoc util-linux

ifneq ($(filter deps,$(MAKECMDGOALS)),)
# The other goals run in a second make, which sees what was just installed.
OTHERS := $(filter-out deps,$(MAKECMDGOALS))
deps:
	@sh tests/support/deps.sh $(PACKAGES)
$(OTHERS): deps
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) $@
.NOTPARALLEL:
.PHONY: deps $(OTHERS)
else

VERSION := 0.1.0
PREFIX  ?= /usr/local
CC      ?= cc
CFLAGS  ?= -O2 -g
PYTHON  ?= python3

# Commands are shown by a word and a file; V=1 shows them whole.
Q    := $(if $V,,@)
says  = $(if $V,,@printf '%-4s%s\n' $1 $@)

# A variant (SAN=1, VARIANT=name) builds in a folder of its own.
VARIANT ?= $(if $(SAN),san)
O       := build$(if $(VARIANT),/$(VARIANT))
ifdef SAN
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
             -fno-omit-frame-pointer
endif

LIBS     := jansson libcrypto libarchive libzstd zlib libpng libjpeg libwebp \
            libwebpdemux libpcre2-8
PKG_CFLAGS := $(shell pkg-config --cflags $(LIBS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(LIBS) 2>/dev/null)

WARN       := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
ALL_CFLAGS := -std=c11 -ffp-contract=off -D_GNU_SOURCE -DASSAY_VERSION='"$(VERSION)"' \
              $(WARN) $(CFLAGS) $(SAN_FLAGS) -pthread -Ilib -Itests/support $(PKG_CFLAGS)
ALL_LIBS   := $(PKG_LIBS) -lm -pthread

TOOLS     := $(notdir $(patsubst %/,%,$(wildcard tools/*/)))
PROGRAMS  := $(TOOLS:%=$O/assay-%)
LIB_OBJS  := $(patsubst %.c,$O/%.o,$(wildcard lib/*/*.c))
TEST_BINS := $(patsubst tests/unit/%.c,$O/tests/%,$(wildcard tests/unit/*_test.c))
TOOL_OBJS := $(patsubst %.c,$O/%.o,$(wildcard tools/*/*.c))
TEST_OBJS := $(patsubst %.c,$O/%.o,$(wildcard tests/unit/*.c))
HEADERS   := $(wildcard lib/*/*.h)
MAN_SRCS  := $(wildcard tools/*/*.scd man/*.scd)
MAN_PAGES := $(patsubst %.scd,$O/man/%,$(notdir $(MAN_SRCS)))

#: make              builds the four programs, build/assay-NAME; V=1 shows commands
all: build
build: $(PROGRAMS)
# needs NAMES: a goal's settings that must be given.
needs = $(foreach v,$1,$(if $($v),,$(error make $@ needs $v=)))
help:
	@echo 'make deps GOAL...   first installs what Debian packages are missing'
	@sed -n 's/^#: //p' Makefile
tests: $(TEST_BINS)

$O/libassay.a: $(LIB_OBJS)
	$(call says,AR)
	@rm -f $@
	$Q$(AR) rcs $@ $^
define program
$O/assay-$(1): $(patsubst %.c,$O/%.o,$(wildcard tools/$(1)/*.c)) $O/libassay.a
	$$(call says,LD)
	$$Q$$(CC) $$(ALL_CFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(ALL_LIBS)
endef
$(foreach tool,$(TOOLS),$(eval $(call program,$(tool))))
$O/tests/%: $O/tests/unit/%.o $O/libassay.a
	$(call says,LD)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LIBS)

$O/bench/%: $O/tests/bench/%.o $O/libassay.a
	$(call says,LD)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LIBS)

# Kernel forms for one instruction set; chosen at run time.
$O/%_avx2.o: ISA := -mavx2 -mfma -mf16c

$O/%.o: %.c $O/flags
	$(call says,CC)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(ISA) -MMD -MP -c -o $@ $<
$O/flags: FORCE
	@mkdir -p $O; echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' >$@
-include $(LIB_OBJS:.o=.d) $(TOOL_OBJS:.o=.d) $(TEST_OBJS:.o=.d)

#: make check        builds and runs every test; SAN=1 under the sanitizers
# The suite: C and shell tests both speak TAP; prove runs them side by side.
JOBS ?= 2
check: build tests man check-layers check-headers check-fuzz
	ASSAY_BIN=$O prove -j$(JOBS) --timer \
	    $(TEST_BINS) $(wildcard tests/cli/*.t tests/pipeline/*.t)

#: make bench        the speed of kernels, of verify and audit, and beside upstream
# Speed is measured, never asserted: prints each kernel's and its ratios.  What is
# measured beside the upstream libraries needs these.
bench: $(patsubst tests/bench/%.c,$O/bench/%,$(wildcard tests/bench/*.c)) $O/assay-receipt
	@for b in $(filter-out $O/assay-%,$^); do $$b || exit; done
	@ASSAY_BIN=$O sh tests/bench/evidence.sh
	@if [ -x $(ORACLE_PYTHON) ]; then \
	    $(MAKE) --no-print-directory bench-tokenizer bench-image; \
	else \
	    echo 'bench-tokenizer, bench-image: skipped, no $(ORACLE_PYTHON); each makes it'; \
	fi

# The bytes of fixtures/tiny/outputs.sha256 from every compiler and optimisation.
BUILDS ?= gcc-O1 gcc-O3 clang-O1 clang-O3
check-builds: $(BUILDS:%=check-build-%)
check-build-%:
	@$(MAKE) --no-print-directory VARIANT=$* CC=$(firstword $(subst -, ,$*)) \
	    CFLAGS=-$(lastword $(subst -, ,$*)) build/$*/assay-forward
	ASSAY_BIN=build/$* prove tests/pipeline/bits.t

check-layers:
	@sh tests/support/layers.sh
check-headers:
	@for h in $(HEADERS); do \
	    echo "#include \"$${h#lib/}\"" | \
	    $(CC) $(ALL_CFLAGS) -fsyntax-only -x c - || exit 1; done
	@echo "headers: each compiles alone"
check-fuzz:
	@$(CC) $(ALL_CFLAGS) -fsyntax-only $(wildcard tests/fuzz/*.c)
	@echo "fuzz targets: each compiles"

man: $(MAN_PAGES)
define page
	$(call says,MAN)
	@mkdir -p $(@D)
	$Qscdoc <$< >$@
	$Qmandoc -T lint -W error $@
endef
$O/man/%: tools/*/%.scd
	$(page)
$O/man/%: man/%.scd
	$(page)

#: make qualify      from receipt to verdict; SIZE= PACK= REFERENCE= CASES= ROOT=,
#:                   CANDIDATE=: pipelines/qualify --help
# The chain a user runs: SIZE=, PACK=, REFERENCE=, CANDIDATE=, ROOT= ... go on
# to pipelines/qualify, which tells them all (--help).
CHAIN := SIZE ROOT PACK RECEIPT REFERENCE CASES PROTOCOL GATES CANDIDATE \
         CANDIDATE_EXE PRECISION FILES ADJUDICATE KEEP_REFERENCE THREADS RUN RESUME
# SIZE=smollm2 makes its own pack and reference first (with pip).
qualify: build
ifeq ($(SIZE),smollm2)
	@ASSAY_BIN=$O pipelines/smollm2/run \
	    $(foreach v,$(CHAIN) PYTHON,$(if $($v),$v='$($v)'))
else
	@ASSAY_BIN=$O pipelines/qualify $(foreach v,$(CHAIN),$(if $($v),$v='$($v)'))
endif
#: make parity       MODEL= INPUT= [PRECISION=]: hidden states against upstream's;
#:                   pipelines/parity --help
# Hidden states against upstream's: MODEL=, INPUT=, and what parity --help tells.
PARITY := MODEL INPUT REVISION RECEIPT PRECISION ATTN DEVICE GATES OUT TRACE \
          THREADS
lower = $(shell echo $1 | tr A-Z a-z)
parity: build
	$(call needs,MODEL INPUT)
	@ASSAY_BIN=$O pipelines/parity $(if $(TEXT),--text) \
	    $(foreach v,$(PARITY),$(if $($v),--$(call lower,$v) '$($v)'))
#: make smoke        [SIZE= PACK= CASE= TOKENS=]: one case answered by greedy tokens
# Does a pack run at all: one case answered by greedy tokens.
smoke: build
	@ASSAY_BIN=$O pipelines/smoke $(foreach v,SIZE ROOT PACK RECEIPT CASES \
	    PROTOCOL CASE TOKENS,$(if $($v),$v='$($v)'))
#: make audit        RUN= or ROOT= [SIGNERS= PACK= AGAINST=]: what evidence proves
# What evidence proves: RUN= a run or a bundle, or ROOT= all of them.
audit: build
	@ASSAY_BIN=$O pipelines/audit $(if $(SIGNERS),--signers='$(SIGNERS)') \
	    $(if $(PACK),--recompute='$(PACK)') $(if $(AGAINST),--against='$(AGAINST)') \
	    $(if $(RUN),'$(RUN)','ROOT=$(or $(ROOT),evidence)')
#: make sign         RUN= KEY=: an SSH signature over a run's seal
# An SSH signature over a run's seal: RUN=, KEY= (an OpenSSH private key).
sign: build
	$(call needs,RUN KEY)
	@$O/assay-receipt sign --key '$(KEY)' '$(RUN)'
#: make archive      RUN= [OUT=]: a sealed run as one file
archive: build
	$(call needs,RUN)
	@ASSAY_BIN=$O pipelines/archive '$(RUN)' $(if $(OUT),'$(OUT)')

#: make reference    SIZE= PACK=, or MODEL= OUT= [TRACE=]: records upstream (Python);
#:                   pipelines/reference/run --help
# Records upstream (SIZE=, PACK=, ROOT= ... as above, TRACE=, CALIBRATE=), or its
# states for token ids (MODEL=, OUT=, INPUT=, LENGTHS=, SEED=, TRACE=), with the
# Python environment at VENV, which is made when there is none.
reference:
	@pipelines/reference/run $(foreach v,SIZE ROOT PACK RECEIPT CASES PROTOCOL \
	    TRACE CALIBRATE MODEL OUT INPUT LENGTHS SEED PYTHON,$(if $($v),$v='$($v)')) \
	    $(if $(filter-out file default,$(origin VENV)),VENV='$(VENV)')

# assay-forward with one file of the library replaced by FILE, as OUT: for tests
# that plant defects.
mutant: build
	@$(CC) $(ALL_CFLAGS) -w $(LDFLAGS) -o '$(OUT)' \
	    $(patsubst %.c,$O/%.o,$(wildcard tools/forward/*.c)) '$(FILE)' \
	    $O/libassay.a $(ALL_LIBS)

#: make install      [PREFIX= DESTDIR=]: programs, chains and man pages
install: build man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/assay
	install $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	for chain in qualify parity archive audit smoke fetch; do \
	    install pipelines/$$chain $(DESTDIR)$(PREFIX)/bin/assay-$$chain || exit 1; done
	install -m 644 pipelines/*.json $(DESTDIR)$(PREFIX)/share/assay
	cp -R fixtures/tiny $(DESTDIR)$(PREFIX)/share/assay/
	for page in $(MAN_PAGES); do \
	    install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page \
	        || exit 1; done

# A pack of a real model's shape with random weights, and one text case.
# With FAMILY= and BYTES=: a family's checkpoint of that many bytes.
ifdef FAMILY
synth: $O/synth/$(FAMILY)-$(BYTES)
$O/synth/$(FAMILY)-$(BYTES):
	@mkdir -p $(@D)
	$(PYTHON) pipelines/synth_family.py --family $(FAMILY) --bytes $(BYTES) --out $@
else
synth: $O/synth/$(or $(SIZE),2)/pack
endif
$O/synth/%/pack:
	@mkdir -p $(@D)
	$(PYTHON) pipelines/synth.py --size $* --out $@ --inputs $(@D)/inputs

# Everything recorded in ../shared/data/goldens, counted by file.
GOLDENS := $(addprefix $O/tests/,tokenizer_goldens_test tokenizer_unicode_test \
           jinja_goldens_test image_test)
goldens: $(GOLDENS)
	@sh tests/support/goldens.sh $(GOLDENS)

# Upstream's own libraries against ours, over generated input, in the Python
# environment at VENV, which is made when there is none.
VENV          ?= build/venv
ORACLE_PACKS  ?= $(wildcard ../shared/data/tokenizers/*)
ORACLE_SEED   ?= 1
ORACLE_TEXTS  ?= 200000
ORACLE_IMAGES ?= 2000
ORACLE_TEMPLATES ?= 5000
ORACLE_PYTHON := $(VENV)/bin/python
oracle: oracle-tokenizer oracle-jinja oracle-image
$(ORACLE_PYTHON):
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -r pipelines/reference/requirements.txt
oracle-tokenizer: $O/assay-export $(ORACLE_PYTHON)
	$(ORACLE_PYTHON) tests/oracle/tokenizer_differential.py --export $< \
	    --seed $(ORACLE_SEED) --strings $(ORACLE_TEXTS) $(ORACLE_PACKS)
	$(ORACLE_PYTHON) tests/oracle/tokenizer_patterns.py --export $< --seed $(ORACLE_SEED)
	$(ORACLE_PYTHON) tests/oracle/tokenizer_classes.py --export $< --seed $(ORACLE_SEED)
oracle-jinja: $O/tests/jinja_goldens_test $O/assay-export $(ORACLE_PYTHON)
	@mkdir -p $O/oracle
	$(ORACLE_PYTHON) tests/oracle/jinja_generate.py $(ORACLE_TEMPLATES) \
	    $(ORACLE_SEED) >$O/oracle/jinja.jsonl
	$(ORACLE_PYTHON) tests/oracle/jinja_families.py $(ORACLE_TEMPLATES) \
	    $(ORACLE_SEED) >$O/oracle/jinja_families.jsonl
	$(ORACLE_PYTHON) tests/oracle/jinja_scopes.py $(ORACLE_TEMPLATES) \
	    $(ORACLE_SEED) >$O/oracle/jinja_scopes.jsonl
	$(ORACLE_PYTHON) tests/oracle/jinja_sources.py $(ORACLE_TEMPLATES) \
	    $(ORACLE_SEED) >$O/oracle/jinja_sources.jsonl
	$< $O/oracle/jinja.jsonl $O/oracle/jinja_families.jsonl \
	    $O/oracle/jinja_scopes.jsonl $O/oracle/jinja_sources.jsonl
	$(ORACLE_PYTHON) tests/oracle/chat_differential.py --export $O/assay-export --seed $(ORACLE_SEED)
oracle-image: $O/assay-export $O/assay-compare $(ORACLE_PYTHON)
	$(ORACLE_PYTHON) tests/oracle/image_differential.py --export $< \
	    --seed $(ORACLE_SEED) --images $(ORACLE_IMAGES)
	$(ORACLE_PYTHON) tests/oracle/image_damage.py --export $< \
	    --seed $(ORACLE_SEED) --images $(ORACLE_IMAGES)
	$(ORACLE_PYTHON) tests/oracle/processor_differential.py --export $< \
	    --seed $(ORACLE_SEED)
	$(ORACLE_PYTHON) tests/oracle/patches_explained.py --export $< \
	    --compare $O/assay-compare --seed $(ORACLE_SEED)

# Processor time beside upstream's tokenizers library, over TEXT=FILE or the
# mixed text of the goldens.
SPEED_TEXT := $(or $(TEXT),$O/oracle/mixed.txt)
$O/oracle/mixed.txt: ../shared/data/goldens/speed/mixed.txt.zst
	@mkdir -p $(@D)
	zstd -q -d -f -o $@ $<
bench-tokenizer: $O/assay-export $(ORACLE_PYTHON) $(SPEED_TEXT)
	$(ORACLE_PYTHON) tests/oracle/tokenizer_speed.py --export $< --text '$(SPEED_TEXT)' $(ORACLE_PACKS)

# The same beside Pillow, over a picture in each format.
bench-image: $O/assay-export $(ORACLE_PYTHON)
	$(ORACLE_PYTHON) tests/oracle/image_speed.py --export $<

# Each fuzz target for FUZZ_SECONDS, from seeds made of the fixtures.
FUZZ_SECONDS ?= 600
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined \
              -fno-sanitize-recover=undefined
FUZZ := $(patsubst tests/fuzz/%_fuzz.c,fuzz-%,$(wildcard tests/fuzz/*_fuzz.c))
fuzz:
	$(MAKE) VARIANT=fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)' $(FUZZ)
fuzz-%: $O/libassay.a
	@mkdir -p $O/corpus/$* $O/seeds/$*
	@[ ! -f tests/fuzz/$*_seeds.py ] || $(PYTHON) tests/fuzz/$*_seeds.py $O/seeds/$*
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $O/$*_fuzz tests/fuzz/$*_fuzz.c $< $(ALL_LIBS)
	$O/$*_fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 \
	    -artifact_prefix=$O/ $O/corpus/$* $O/seeds/$*

clean:
	rm -rf build
FORCE:
# A page that does not lint, or a file cut short, must not pass for made.
.DELETE_ON_ERROR:
.PHONY: all build help tests check bench \
        check-builds check-layers check-headers check-fuzz man qualify parity mutant smoke audit \
        archive sign synth reference \
        goldens oracle oracle-tokenizer oracle-jinja oracle-image bench-tokenizer bench-image fuzz install clean FORCE
.SECONDARY:

endif
