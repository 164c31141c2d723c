# The front door. Meson does the work; tools/setup is the only thing that installs.
BUILD ?= build
MESON_FLAGS ?=
BENCH_FLAGS ?=

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet plim libplimsoll.so.0.1.0

$(BUILD)/build.ninja:
	@tools/setup build
	@meson setup $(BUILD) -Dtests=false -Dbuildtype=release -Dwerror=$(if $(CI),true,false) $(MESON_FLAGS) >/dev/null

demo: all
	@tools/setup demo
	@tools/demo $(BUILD)/plim

test:
	@tools/setup test
	@tools/run-tests build-test

check: test
	@tools/setup check
	@tools/run-checks

interop: all
	@tools/setup interop
	@interop/run $(BUILD)/plim

bench: all
	@tools/setup bench
	@bench/run $(BUILD)/plim $(BENCH_FLAGS)

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf build build-*

.PHONY: all demo test check interop bench install clean
