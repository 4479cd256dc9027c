#!/usr/bin/env bash
# Sets Millrace up on Debian 12 and runs it. See `config/setup.sh help`.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=config/setup.sh

# Debian packages by what they are for. Nothing here is built from source that Debian or PyPI has.
build_packages=(
  g++ cmake ninja-build pkgconf                                            # tools
  ccache                                                                   # from the first build on: later ones take its objects
  mold                                                                     # links in a third of the time
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc++-dev   # control plane
  libboost-dev libacl1-dev libtomlplusplus-dev libspdlog-dev libcli11-dev  # the daemon's and the command line's parts
  libjpeg62-turbo-dev libspng-dev libdeflate-dev libwebp-dev libtiff-dev  # decoders
  libavif-dev                                                             # AVIF; libavif15 decodes it at run time. Optional
  libde265-dev                                                            # HEIC; libde265-0 decodes it at run time. Optional
  libhwloc-dev                                                            # which cores share what
  libncurses-dev                                                          # `millrace top`
  rapidjson-dev                                                           # lists of samples that the command line reads
  libseccomp-dev                                                          # what a decoder's process may not do
  libxxhash-dev                                                            # keys and checksums of what is kept
  libsystemd-dev                                                          # telling systemd that the daemon is ready
  libssl-dev                                                              # hashes for the page of `millrace web`; gRPC brings it anyway
  libxrt-dev uuid-dev                                                     # driving FPGAs; its headers want uuid/uuid.h. Optional
)
test_packages=(catch2 libbenchmark-dev libavif-bin python3 python3-venv)
check_packages=(clang clang-format libclang-rt-14-dev llvm git shellcheck)  # what .ci/run needs further
package_packages=(dpkg-dev help2man lintian)  # what `package` needs further
wheels_packages=(binutils python3 python3-venv)  # what `wheels` needs further
docs_packages=(graphviz python3 python3-venv)  # what `docs` needs further
long_packages=(debootstrap prometheus)  # what `test --all` needs further: other distributions, and who scrapes our figures
bench_packages=(fuse3)  # what `bench --python` needs further: a slow disk
peers_packages=(libopencv-dev libturbojpeg0-dev libavdevice59 libavfilter8 libavformat59 libavcodec59 zlib1g-dev)  # FFCV, SPDL, Pillow-SIMD

uv=uv==0.13.9  # from PyPI

usage() {
  cat <<TEXT
usage: $me COMMAND [ARGUMENTS]

  demo [FOLDER]     deps and build, then a daemon of its own takes the pictures in FOLDER (or some that it makes itself) through
                    the training recipe; a contact sheet to look at, the throughput, and what the cache brought
  test [--preset P] [--offline | --frameworks] [--long] [CTEST ARGUMENTS]
                    deps and build, then the tests; for example: $me test -L unit, or $me test -LE golden. Where -R NAME or
                    -L LABEL chooses tests, only what those need is built; of the labels system, python and hf some need everything.
                    Ends with a list of the checks that were skipped, with their reasons, and with the names of the tests that failed.
                    P is release (the default), debug, asan, tsan, clang or cuda. --offline: without what needs packages from PyPI: the
                    comparisons and the Python package's tests. --frameworks: also the tests with PyTorch, JAX and Ray, whose packages
                    are 3 GB to fetch and 5 GB on the disk. --long: also the tests labelled long; tests/README.md lists them
  test --all        the long run, some two hours, as root: what .ci/run does, the tests labelled long, soaks of ten minutes, a minute for each
                    fuzz target, the preset debug, and wheels, on Debian 13 too. tests/README.md lists what is in neither
  bench [--json] [--filter NAME] [--data FOLDER]
                    deps and build, then the benchmarks
  bench --python [--json] [--only client,throughput,dataloader,augmented,one_image,in_place,processors,transformers,ray,shards,tables,steady,import] [--data FOLDER]
                    the Python package's, with PyTorch from PyPI in the tests' virtual environment: 3 GB to fetch
  bench --resample [--rounds N] [--target avx2]
                    our resamplers beside Pillow-SIMD's, which is compiled in a virtual environment of its own
  bench --peers [--only PEERS] [--rounds N] [--batches N] [--data FOLDER] [--resume] [--publish]
                    Millrace beside Pillow, torchvision, DALI and others from PyPI, in virtual environments of their own: 4 GB to fetch,
                    8 GB on the disk, and 200 Debian packages; the run itself takes half an hour
  bench --publish   all of these, with the photographs in MILLRACE_TEST_DATA, and the results into the plot of tests/bench/README.md and the tables
                    there, in daemon/doc/cpu_engine.md and in kernels/cpu/README.md; three quarters of an hour of a machine that does nothing else
  bench --l3 [--quick] [--rounds N] [--data FOLDER]
                    L3 beside libpng, QOI, lossless WebP, JPEG XL, LZ4 and others from PyPI, in a virtual environment of its own; with
                    --quick some two minutes
  bench --fpga-model [--data FOLDER] [--card u50|u250] [--source jpeg|packed] [--explore] [--json] ...
                    a model of decoders on FPGAs, driven by the symbols of photographs: how far it is from published designs, then a design's
                    images/s, what binds it, resources and power; with --explore, which takes some minutes, all designs under the cards'
                    resources and power, and their fronts as build/bench/fpga/model.svg. --help says more. No card is used
  build [--preset P] [TARGETS]
                    configure and compile into build/P; without targets what cmake --install installs: the daemon, the command line and
                    libmillrace. Kernels for NVIDIA's GPUs are built in where nvcc of version 13 or newer is found: see deps --cuda. With
                    P = cuda they have to be, their benchmark (tests/bench/cuda) can be compiled too, and without targets nothing else is
  package           deps and build, then Debian packages in build/packages: the daemon, the command line, libmillrace and what compiling with
                    it needs; checked by lintian
  wheels [--programs FOLDER]
                    deps and build, with kernels for NVIDIA's GPUs, then Python wheels in build/wheels: millrace, which is pure Python, and
                    millrace-daemon with the programs and the libraries that they need; says for which platforms. --programs: of
                    programs that are built already, here or elsewhere on this Debian
  docs              a site of all pages that users need, with search and a reference of the Python package: build/docs/index.html. A link
                    to nothing, a page that is in no table and a docstring that is no reStructuredText fail. Draws daemon/doc/overview.svg anew, of overview.dot
  deps [--dry-run] [--cuda] [build|test|check|package|wheels|docs|long|bench|peers]...
                    install the Debian packages that are missing, with sudo when you are not root; without a set build's, test's and check's.
                    --cuda: also NVIDIA's compiler and runtime, from PyPI into build/venv-cuda (250 MB), where no CUDA 13 is found. Running
                    GPU kernels takes none of that: only NVIDIA's driver
  help              this text
TEXT
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }
# Into the file MILLRACE_CLOCK, for the table of times that .ci/run ends with. KIND: installing, compiling, testing (seconds), objects or hits.
clocked() {  # KIND NUMBER
  [ -z "${MILLRACE_CLOCK:-}" ] || printf '%s\t%s\n' "$1" "$2" >>"$MILLRACE_CLOCK"
}
misused() { say "$*"; usage >&2; exit 2; }

# ---------------------------------------------------------------------------------------------------------------- packages

missing_of() {  # PACKAGE...: those that are not installed, one a line
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

check_root() {  # MISSING...
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null ||
    die "these packages are missing, and installing them needs root or sudo: $*"
  sudo -n true 2>/dev/null || [ -t 0 ] ||
    die "these packages are missing, and sudo asks for a password, which needs a terminal: $*"
}

# Another apt may be at work: its package lock is waited for by apt itself, its list lock by trying again.
apt() {
  local log try
  log=$(mktemp)
  for try in $(seq 1 30); do
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1; then
      rm -f "$log"
      return 0
    fi
    grep -q 'Could not get lock' "$log" || break
    say "another apt holds its lock; trying again in 10 seconds ($try of 30)"
    sleep 10
  done
  tail -n 30 "$log" >&2
  rm -f "$log"
  return 1
}

packages_of() {  # SET
  case $1 in
    build) printf '%s\n' "${build_packages[@]}" ;;
    test) printf '%s\n' "${test_packages[@]}" ;;
    check) printf '%s\n' "${check_packages[@]}" ;;
    bench) printf '%s\n' "${bench_packages[@]}" ;;
    peers) printf '%s\n' "${peers_packages[@]}" ;;
    package) printf '%s\n' "${package_packages[@]}" ;;
    wheels) printf '%s\n' "${wheels_packages[@]}" ;;
    docs) printf '%s\n' "${docs_packages[@]}" ;;
    long) printf '%s\n' "${long_packages[@]}" ;;
    *) misused "deps: no set of packages is called $1" ;;
  esac
}

deps() {
  local dry=no cuda=no sets=() set wanted=() missing=()
  for set in "$@"; do
    case $set in
      --dry-run) dry=yes ;;
      --cuda) cuda=yes ;;
      *) packages_of "$set" >/dev/null; sets+=("$set") ;;
    esac
  done
  [ ${#sets[@]} -gt 0 ] || sets=(build test check)
  command -v dpkg-query >/dev/null || die "this is not Debian: install by hand what $me lists at its top"
  for set in "${sets[@]}"; do mapfile -t -O "${#wanted[@]}" wanted < <(packages_of "$set"); done
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [ ${#missing[@]} = 0 ]; then
    [ $dry = no ] || say "nothing to install"
  elif [ $dry = yes ]; then
    say "would install: ${missing[*]}"
  else
    install_packages "${missing[@]}"
  fi
  [ $cuda = no ] || cuda_toolkit $dry
}

install_packages() {  # MISSING...
  local began=$SECONDS
  check_root "$@"
  say "installing from Debian: $*"
  apt update || die "apt-get update failed: see above"
  apt install --no-install-recommends "$@" || die "apt-get install failed: see above"
  clocked installing $((SECONDS - began))
}

# -------------------------------------------------------------------------------------------------------------------- demo

# uint8 in batches of 32: small enough for the 64 MiB /dev/shm of a container.
demo() {
  [ $# -le 1 ] || misused "demo takes one folder"
  local folder=${1:-} bin=$top/build/release/bin sheet=$top/build/millrace-demo.png
  if [ -n "$folder" ]; then
    [ -d "$folder" ] || die "demo: $folder is not a folder"
    folder=$(cd "$folder" && pwd)
  fi
  deps build
  build_programs release bin/millraced bin/millrace-opener bin/millrace bin/millrace_make_pictures
  if [ -z "$folder" ]; then
    folder=$top/build/demo-pictures
    say "making pictures in build/demo-pictures"
    "$bin/millrace_make_pictures" "$folder" 1024 || die "demo: no pictures could be made"
  fi
  say "a daemon of its own takes $folder through the training recipe"
  "$bin/millrace" preview "$folder" --private --recipe train --size 224 -n 12 -o "$sheet" || die "demo: the preview failed"
  echo "Contact sheet: $sheet"
  "$bin/millrace" run --private --dataset "$folder" --recipe train --size 224 --batch 32 --dtype uint8 --epochs 8 --shuffle ||
    die "demo: the run failed"
}

# -------------------------------------------------------------------------------------------------------------------- test

python_of() { echo "$top/build/$1/bin/python"; }  # ENVIRONMENT

# What a file of requirements lists, and the files that it refers to.
requirements_in() {  # FILE
  local other
  sed -n 's/^-r //p' "$1" | while read -r other; do requirements_in "$(dirname "$1")/$other"; done
  grep -vE '^(#|-r |$)' "$1"
}

# Makes the virtual environment build/ENVIRONMENT with what REQUIREMENTS lists, or adds what it lacks.
python_with() {  # ENVIRONMENT REQUIREMENTS
  local venv=$top/build/$1 wanted
  wanted=$(requirements_in "$top/$2")
  if [ -e "$venv/installed.txt" ]; then
    grep -qvxFf "$venv/installed.txt" <<<"$wanted" || return 0
    ! grep -qvxFf <(echo "$wanted") "$venv/installed.txt" || rm "$venv/installed.txt"  # another version of something: all anew
  fi
  say "installing from PyPI into build/$1: ${wanted//$'\n'/ }"
  if [ ! -e "$venv/installed.txt" ]; then
    rm -rf "$venv"
    logged "$venv.log" python3 -m venv "$venv"
  fi
  rm -f "$venv/installed.txt"  # until everything is there
  install_into "$1" -r "$top/$2"
  echo "$wanted" >"$venv/installed.txt"
}

# Nothing is compiled beforehand: Python compiles at the first import, and most of what the frameworks bring is never imported.
install_into() {  # ENVIRONMENT ARGUMENTS...
  local venv=$top/build/$1
  shift
  uv_into "$venv" "$@" || logged "$venv.log" "$venv/bin/pip" install --disable-pip-version-check -q --no-compile "$@"
}

# uv is several times as fast as pip, but ignores pip's settings: where those name an index, pip has to install. It installs for the tests and
# the site alone; the other environments compile packages, which need what pip does. One uv serves both.
uv_into() {  # FOLDER ARGUMENTS...: fails where pip has to install
  local venv=$1 program=$top/build/venv/bin/uv
  shift
  case $venv in "$top/build/venv" | "$top/build/venv-docs") ;; *) return 1 ;; esac
  ! "$venv/bin/pip" config list | grep index >/dev/null || return 1
  [ -x "$program" ] || program=$venv/bin/uv
  [ -x "$program" ] || "$venv/bin/pip" install --disable-pip-version-check -q --no-compile "$uv" >"$venv.log" 2>&1 || return 1
  UV_HTTP_TIMEOUT=180 "$program" pip install -q --python "$venv/bin/python" "$@" >"$venv.log" 2>&1
}

# Builds the Python package's wheel in build/python-package/wheel, from a copy, so that nothing is left in the checkout.
python_wheel() {  # ENVIRONMENT [PIP OPTIONS...]
  local copy=$top/build/python-package
  rm -rf "$copy"
  mkdir -p "$copy"
  (cd "$top/client/python" && tar -c --exclude=build --exclude='*.egg-info' --exclude=_proto --exclude=__pycache__ .) | tar -x -C "$copy"
  (cd "$top/proto/rpc" && tar -c millrace) | (mkdir "$copy/proto" && tar -x -C "$copy/proto")
  logged "$copy.log" "$(python_of "$1")" -m pip wheel --disable-pip-version-check -q --no-deps "${@:2}" -w "$copy/wheel" "$copy"
}

# First with what it depends on, then whatever was there of the same version.
install_wheel() {  # ENVIRONMENT
  install_into "$1" "$top"/build/python-package/wheel/*.whl
  install_into "$1" --force-reinstall --no-deps "$top"/build/python-package/wheel/*.whl
}

# All that tests in Python need, in build/venv. `frameworks`: with PyTorch, JAX and Ray, which stay there.
python_environment() {  # [frameworks]
  python_with venv "tests/requirements${1:+-$1}.txt"
  python_wheel venv
  install_wheel venv
}

# Test images beside the checkout, unless the caller names others.
find_test_data() {
  if [ -z "${MILLRACE_TEST_DATA:-}" ] && [ -d "$top/../shared/data" ]; then
    MILLRACE_TEST_DATA=$(cd "$top/../shared/data" && pwd)
    export MILLRACE_TEST_DATA
  fi
}

environment=  # the process that makes them

run_tests() {
  local preset=release packages=python frameworks=OFF long=no options=() asked=() chosen=() began status=0
  while [ $# -gt 0 ]; do
    case $1 in
      --preset)
        [ $# -ge 2 ] || misused "--preset needs a name"
        preset=$2
        shift 2
        ;;
      --preset=*) preset=${1#*=}; shift ;;
      --offline) packages=nothing; shift ;;
      --frameworks) packages=frameworks; shift ;;
      --long) long=yes; shift ;;
      --all) misused "test --all stands alone" ;;
      *) asked+=("$1"); shift ;;  # ctest's
    esac
  done
  check_arguments_of_ctest "${asked[@]}"
  if [ $long = no ]; then choose_without_long "${asked[@]}"; else chosen=("${asked[@]}"); fi
  deps build test
  [ "$preset" != clang ] || deps check
  [ "$preset" != cuda ] || deps --cuda build
  case $preset in
    release) options+=(-DMILLRACE_CUDA="$([ $long = yes ] && find_nvcc >/dev/null && echo ON || echo OFF)") ;;
    cuda) options+=(-DMILLRACE_CUDA=ON) ;;
    tsan) options+=(-DMILLRACE_TSAN_SEES_ALL="$([ $long = yes ] && echo ON || echo OFF)") ;;
  esac
  if [ $packages = nothing ]; then options+=(-DMILLRACE_PYTHON=python3); else options+=(-DMILLRACE_PYTHON="$(python_of venv)"); fi
  options+=(-DMILLRACE_BENCHMARKS="$([ $long = yes ] && echo ON || echo OFF)")
  [ $packages != frameworks ] || frameworks=ON
  configure "$preset" -DMILLRACE_BUILD_TESTS=ON -DMILLRACE_TEST_FRAMEWORKS=$frameworks "${options[@]}"
  if [ $packages != nothing ] && ! chosen_without_python "$preset" "${chosen[@]}"; then
    set -m  # a group of processes of its own, so that what it started ends with it
    if [ $packages = frameworks ]; then python_environment frameworks; else python_environment; fi &  # while the compiler works
    environment=$!
    set +m
    trap 'kill -- "-$environment" 2>/dev/null || true; wait' EXIT
  fi
  compile_for_tests "$preset" "${chosen[@]}"
  if [ -n "$environment" ]; then
    began=$SECONDS
    wait "$environment" || die "what the tests need from PyPI cannot be set up; $me test --offline goes without it"
    clocked installing $((SECONDS - began))
    trap - EXIT
  fi
  find_test_data
  say "testing; some checks need a folder of test images in MILLRACE_TEST_DATA (now: ${MILLRACE_TEST_DATA:-none})"
  cd "$top"
  began=$SECONDS
  list_after "$preset" with_shared_memory ctest --preset "$preset" --no-tests=error -j "$(jobs_for_tests)" "${chosen[@]}" || status=$?
  clocked testing $((SECONDS - began))
  [ $long = yes ] || ! are_chosen "${asked[@]}" || chosen_tests "$preset" "${chosen[@]}" | grep '"name"' >/dev/null ||
    say "tests labelled long need --long, those labelled frameworks --frameworks"
  return $status
}

# ctest passes over what it does not know, and would run everything.
check_arguments_of_ctest() {  # ARGUMENTS...
  while [ $# -gt 0 ]; do
    case $1 in
      -R | --tests-regex | -L | --label-regex | -E | --exclude-regex | -LE | --label-exclude | -j | --parallel | -I | --tests-information | \
        --repeat | --timeout | -O | --output-log | --output-junit | --test-load | --max-width)
        [ $# -ge 2 ] || misused "$1 needs a value"
        shift
        ;;
      -V | -VV | --verbose | --extra-verbose | -Q | --quiet | --output-on-failure | --stop-on-failure | --rerun-failed | --schedule-random | \
        --progress | -N | -j[0-9]*) ;;
      -*) misused "test has no option $1" ;;
      *) misused "test takes options, and $1 is none: -R NAME chooses a test by its name, -L LABEL by its kind" ;;
    esac
    shift
  done
}

# ctest leaves out what matches all of several -LE, so that one has to name both.
choose_without_long() {  # CTEST ARGUMENTS...: `chosen` has the same, and leaves out the label `long` as well
  local left_out='^long$'
  while [ $# -gt 0 ]; do
    case $1 in
      -LE | --label-exclude)
        [ $# -ge 2 ] || misused "$1 needs a regular expression"
        left_out+="|$2"
        shift
        ;;
      *) chosen+=("$1") ;;
    esac
    shift
  done
  chosen+=(-LE "$left_out")
}

# Whether tests are chosen by their names or labels.
are_chosen() { case " $* " in *" -R "* | *" --tests-regex "* | *" -L "* | *" --label-regex "*) ;; *) return 1 ;; esac }  # CTEST ARGUMENTS...

# What ctest says of the tests that are chosen, as JSON.
chosen_tests() {  # PRESET CTEST ARGUMENTS...
  (cd "$top" && ctest --preset "$1" --show-only=json-v1 "${@:2}")
}

# Whether none of the tests runs in build/venv; tests/CMakeLists.txt gives those that do a folder for bytecode.
chosen_without_python() {  # PRESET CTEST ARGUMENTS...
  local tests
  tests=$(chosen_tests "$@") && ! grep -q PYTHONPYCACHEPREFIX <<<"$tests"
}

# Everything; where tests are chosen, what those need.
compile_for_tests() {  # PRESET CTEST ARGUMENTS...
  local preset=$1 chosen targets=()
  if are_chosen "${@:2}"; then
    chosen=$(chosen_tests "$@" | python3 "$top/tests/support/needed_targets.py" "$top/build/$preset") ||
      die "ctest cannot say which tests that chooses: ${*:2}"
    [ -n "$chosen" ] || return 0  # tests of the checkout, of which nothing is built
    mapfile -t targets <<<"$chosen"
  fi
  compile "$preset" "${targets[@]}"
}

# Runs ctest; then comes the list of what its tests skipped, and at the very end the names of those that failed.
list_after() {  # PRESET CTEST...
  local status=0 failed=$top/build/$1/Testing/Temporary/LastTestsFailed.log
  export MILLRACE_SKIPPED=$top/build/$1/skipped.txt
  mkdir -p "$top/build/$1"
  : >"$MILLRACE_SKIPPED"
  case " $* " in *" --rerun-failed "*) ;; *) rm -f "$failed" ;; esac
  "${@:2}" || status=$?
  python3 "$top/tests/support/skips.py" "$1=$MILLRACE_SKIPPED"
  [ ! -s "$failed" ] || say "failed: $(cut -d: -f2- "$failed" | tr '\n' ' ')"
  return $status
}

# shellcheck source=config/build.sh
. "$top/config/build.sh"
# shellcheck source=config/bench.sh
. "$top/config/bench.sh"
# shellcheck source=config/wheels.sh
. "$top/config/wheels.sh"
# shellcheck source=config/docs.sh
. "$top/config/docs.sh"

command=${1:-help}
[ $# = 0 ] || shift
case $command in
  deps) deps "$@" ;;
  build) build "$@" ;;
  package) package "$@" ;;
  wheels) wheels "$@" ;;
  docs) docs "$@" ;;
  demo) demo "$@" ;;
  test) if [ "${1:-}" = --all ]; then exec "$top/.ci/run" "$@"; else run_tests "$@"; fi ;;
  bench) bench "$@" ;;
  help | -h | --help) usage ;;
  *) misused "no command is called $command" ;;
esac
