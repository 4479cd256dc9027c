# shellcheck shell=bash disable=SC2154
# config/setup.sh bench: what each bench needs, and how it is run. Sourced by setup.sh, whose functions and variables it uses.

prepare_bench_python() {
  deps build test bench
  build_programs release bin/millraced bin/millrace
  python_environment frameworks
  install_into venv mfusepy==3.1.1
  find_test_data
  export MILLRACE_DAEMON=$top/build/release/bin/millraced MILLRACE_CLI=$top/build/release/bin/millrace
}

bench_python() {
  prepare_bench_python
  "$(python_of venv)" "$top/tests/bench/python/bench.py" "$@"
}

prepare_bench_resample() {
  deps build test peers
  configure release -DMILLRACE_BUILD_TESTS=ON
  compile release bin/millrace_bench_resample
  CC="cc -mavx2" python_with venv-peers-simd tests/bench/peers/requirements-simd.txt
  export MILLRACE_BENCH_RESAMPLE=$top/build/release/bin/millrace_bench_resample
}

bench_resample() {
  prepare_bench_resample
  "$(python_of venv-peers-simd)" "$top/tests/bench/python/resample.py" "$@"
}

# Runs a step that makes a peer. If it fails, its reason stays beside the environments, for the table; the other peers run.
peer_step() {  # PEER LOG COMMAND...
  local failed=$top/build/peers.$1.failed log=$top/build/$2
  rm -f "$failed"
  ("${@:3}") && return 0
  { grep -i error "$log" || cat "$log"; } | tail -n 2 | tr '\n' ' ' >"$failed"
}

# Compiles a package into an environment that has what it needs.
compile_package() {  # ENVIRONMENT PACKAGE
  local venv=$top/build/$1
  [ ! -e "$venv/$2" ] || return 0
  logged "$venv.$2.log" "$venv/bin/pip" install --disable-pip-version-check -q --no-deps --no-build-isolation "$2"
  touch "$venv/$2"
}

prepare_bench_peers() {
  deps build test
  (deps peers) || say "going on without some of the peers"
  build_programs release bin/millraced bin/millrace
  python_with venv-peers tests/bench/peers/requirements.txt
  python_wheel venv-peers
  install_wheel venv-peers
  peer_step ffcv venv-peers.ffcv==1.0.2.log compile_package venv-peers ffcv==1.0.2
  CC="cc -mavx2" peer_step pillow_simd venv-peers-simd.log python_with venv-peers-simd tests/bench/peers/requirements-simd.txt
  peer_step tfdata venv-peers-tf.log python_with venv-peers-tf tests/bench/peers/requirements-tf.txt
  find_test_data
  export MILLRACE_DAEMON=$top/build/release/bin/millraced
}

bench_peers() {
  prepare_bench_peers
  cd "$top" || return
  "$(python_of venv-peers)" "$top/tests/bench/peers/bench.py" "$@"
}

prepare_bench_l3() {
  deps build test
  configure release -DMILLRACE_BUILD_TESTS=ON
  compile release bin/millrace bin/millraced bin/millrace_bench_l3
  python_with venv-peers-l3 tests/bench/peers/requirements-l3.txt
  find_test_data
}

bench_l3() {
  prepare_bench_l3
  "$top/tests/bench/peers/l3.py" "$@"
}

prepare_bench_service() {
  deps build test
  configure release -DMILLRACE_BUILD_TESTS=ON
  compile release bin/millrace_bench bin/millrace_bench_cache_policy bin/millrace_bench_kernels bin/millraced bin/millrace
  find_test_data
}

bench_service() {
  prepare_bench_service
  "$top/build/release/bin/millrace_bench" "$@"
}

# A model of FPGA decoders; no card is used. With --explore also its figure.
bench_fpga_model() {
  local results=$top/build/bench/fpga argument explores=no cards=(u50 u250) card
  deps build test
  configure release -DMILLRACE_BUILD_TESTS=ON
  compile release bin/millrace-fpga-model
  find_test_data
  for argument in "$@"; do [ "$argument" != --explore ] || explores=yes; done
  if [ $explores = no ]; then
    "$top/build/release/bin/millrace-fpga-model" "$@"
    return
  fi
  for argument in "$@"; do [ "$argument" != --card ] || cards=(chosen); done
  mkdir -p "$results"
  for card in "${cards[@]}"; do
    if [ "$card" = chosen ]; then
      "$top/build/release/bin/millrace-fpga-model" --output "$results/$card" "$@"
    else
      "$top/build/release/bin/millrace-fpga-model" --output "$results/$card" --card "$card" "$@"
    fi
  done
  cards=("${cards[@]/#/$results/}")
  python3 "$top/tests/bench/fpga/draw_designs.py" "$results/model.svg" "${cards[@]/%/.jsonl}"
  say "the model's figure: build/bench/fpga/model.svg; all designs: build/bench/fpga/*.csv"
}

# All of them; everything that needs the network or a compiler comes first.
bench_publish() {
  local results=$top/build/bench
  [ $# = 0 ] || misused "bench --publish takes no arguments"
  prepare_bench_service
  prepare_bench_python
  prepare_bench_resample
  prepare_bench_peers
  [ -d "${MILLRACE_TEST_DATA:-/nowhere}/photos" ] || die "bench --publish needs photographs: MILLRACE_TEST_DATA/photos"
  mkdir -p "$results"
  say "measuring for three quarters of an hour: leave the machine alone"
  cut -d ' ' -f 1-3 /proc/loadavg >"$results/load.txt"
  "$top/build/release/bin/millrace_bench" --json >"$results/service.jsonl"
  "$top/build/release/bin/millrace_bench_kernels" --benchmark_format=json >"$results/kernels.json"
  "$top/build/release/bin/millrace_bench_cache_policy" --json >"$results/policy.jsonl"
  "$(python_of venv-peers-simd)" "$top/tests/bench/python/resample.py" --json >"$results/resample.jsonl"
  "$(python_of venv)" "$top/tests/bench/python/bench.py" --json >"$results/python.json"
  python3 "$top/tests/bench/python/publish.py" "$results"
  cd "$top" || return
  "$(python_of venv-peers)" "$top/tests/bench/peers/bench.py" --publish
}

bench() {
  case ${1:-} in
    --python) shift; bench_python "$@" ;;
    --resample) shift; bench_resample "$@" ;;
    --peers) shift; bench_peers "$@" ;;
    --l3) shift; bench_l3 "$@" ;;
    --fpga-model) shift; bench_fpga_model "$@" ;;
    --publish) shift; bench_publish "$@" ;;
    *) bench_service "$@" ;;
  esac
}
