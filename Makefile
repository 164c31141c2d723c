# The front door. Meson does the work; tools/setup is the only thing that installs.
BUILD ?= build
MESON_FLAGS ?=
BENCH_FLAGS ?=

all: $(BUILD)/build.ninja ## build/plim and the library
	@tools/progress $(BUILD)/build.log ninja -C $(BUILD) plim libplimsoll.so.0.1.0

$(BUILD)/build.ninja:
	@tools/setup build
	@meson setup $(BUILD) -Dtests=false -Dbuildtype=release -Dwerror=$(if $(CI),true,false) $(MESON_FLAGS) >/dev/null

demo: all ## the story on Fashion-MNIST, in six acts
	@tools/setup demo
	@tools/demo $(BUILD)/plim

test: ## the tests
	@tools/setup test
	@tools/run-tests build-test

check: test ## and sanitizers, other builds, fuzzing
	@tools/setup check
	@tools/run-checks

interop: all ## the same models in real Keras, the same pictures in TensorFlow
	@tools/setup interop
	@interop/run $(BUILD)/plim

bench: all ## speed and memory beside TensorFlow, PyTorch and JAX
	@tools/setup bench
	@bench/run $(BUILD)/plim $(BENCH_FLAGS)

install: all ## into the prefix that meson was set up with
	@meson install -C $(BUILD) --no-rebuild

clean: ## removes build and build-*
	@rm -rf build build-*

help: ## this
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

.PHONY: help all demo test check interop bench install clean
