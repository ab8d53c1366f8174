# Every target sets up what it needs: run it on a fresh machine (Debian 12, as root or with sudo).
SHELL := /bin/bash
JOBS ?= $(shell nproc)
export CCACHE_DIR ?= $(HOME)/.cache/ashlar/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
CARGO_TARGET := $(HOME)/.cache/ashlar/cargo
VENV := $(HOME)/.cache/ashlar/venv
PORT ?= 8000

.PHONY: help run test build build-gpu gpu-bundle check-gpu setup setup-test unit tsan e2e images chart-test cluster-test fuzz bench-cpu bench-hooks tidy

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## build, serve the built-in demo model, stream one answer, keep serving
	@tests/support/first_run.sh build/release/bin/ashlar $(PORT)

test: setup-test build unit tsan e2e images chart-test cluster-test ## every check that CI makes
	@echo "make test: all checks passed"

build: setup ## the release binaries and their plugins
	cmake --preset release -DASHLAR_CARGO_TARGET=$(CARGO_TARGET)
	cmake --build --preset release -j $(JOBS) --target ashlar ashlar-hooks

build-gpu: ## the CUDA plugin for every capability and the HIP plugin, into build/gpu
	kernels/cuda/build.sh build/gpu
	kernels/hip/build.sh build/gpu

gpu-bundle: build ## the release binary with its libraries, for a GPU host without packages
	tests/gpu/bundle.sh build/release build/gpu-bundle

check-gpu: ## on a GPU host: build there, check every op and row, sanitize, time
	tests/gpu/build_and_check.sh build/gpu-check

setup: ## packages and tool chain
	@tests/support/setup.sh build

setup-test:
	@tests/support/setup.sh test $(VENV)

unit: setup-test ## unit tests under ASan and UBSan
	cmake --preset dev -DASHLAR_CARGO_TARGET=$(CARGO_TARGET) -DASHLAR_SMOLLM2=$(VENV)/smollm2.gguf
	cmake --build --preset dev -j $(JOBS)
	ctest --test-dir build/dev --output-on-failure -j $(JOBS) --no-tests=error

tsan: setup-test ## tests with threads under TSan
	cmake --preset tsan -DASHLAR_CARGO_TARGET=$(CARGO_TARGET)
	cmake --build --preset tsan -j $(JOBS) --target threaded_tests
	ctest --test-dir build/tsan --output-on-failure -j $(JOBS) -L threads --no-tests=error

e2e: setup-test build ## the real binary with real clients
	tests/e2e/run.sh build/release/bin/ashlar $(VENV)

images: setup-test build ## the file tree of each container image, run as a pod would
	tests/images/run.sh build/release build/gpu

chart-test: setup-test ## the chart with a real helm, every values file
	tests/chart/run.sh $(VENV)

cluster-test: setup-test build ## operator, chart and runtime on a real control plane
	tests/cluster/run.sh build/release $(VENV)

fuzz: setup-test ## each fuzz target for FUZZ_SECONDS (60)
	cmake --preset fuzz -DASHLAR_CARGO_TARGET=$(CARGO_TARGET)
	cmake --build --preset fuzz -j $(JOBS)
	tests/fuzz/run.sh build/fuzz/bin $${FUZZ_SECONDS:-60}

bench-cpu: setup-test build ## the cpu plugin beside llama.cpp in the same run
	tests/bench/bench_cpu.sh build/release $(VENV)

bench-hooks: build ## the hooks beside a Go server in the same run
	cd tests/bench/hooks && CGO_ENABLED=0 go run . ../../../build/release/bin/ashlar-hooks

tidy: setup-test ## clang-tidy over every source
	cmake --preset tidy -DASHLAR_CARGO_TARGET=$(CARGO_TARGET)
	cmake --build --preset tidy -j $(JOBS)
