#!/usr/bin/env bash
# What needs a GPU, in one command: packed where Millrace is built, run where a GPU is.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<TEXT
usage: tests/gpu/run.sh pack [KIT]   where Millrace is built (config/setup.sh build --preset release all): the programs without their
                                     symbols and the libraries that they need, into the folder KIT (default build/gpu-kit; 60 MB)
       KIT/run.sh DATA               on a machine with a GPU and NVIDIA's driver; nothing else has to be installed there

  DATA  a folder of photographs (JPEG), some dozens or more

A run says what GPU there is and what \`millrace doctor\` thinks of it; tests pixels, the hand-over of a GPU's memory to other processes, users and
namespaces (as root), and what happens when the GPU's process is killed; looks at the owner of the GPU with compute-sanitizer, if that is there;
and prints figures: images/s into the host's memory and into the GPU's, uint8 and float16, and what an image costs the host. The kernels alone
have a run of their own, tests/bench/cuda/run.sh. A step that fails does not keep the next from running. Exit status: 1 a step failed, 77 there
is no GPU.
With LD_LIBRARY_PATH=.../tests/support/cuda_driver/lib it runs on the simulated driver: for a look at the script, not at figures.
TEXT
}

say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# ------------------------------------------------------------------------------------------------------------------ packing

programs=(bin/millraced bin/millrace bin/millrace-cuda bin/millrace-decoder bin/millrace-opener bin/millrace_bench_host_cost
  tests/millrace_system_cuda tests/millrace_system_client tests/millrace_conformance tests/millrace_in_user_namespace)

# Every library but those that belong to the machine: the C library, which is older here or the same, and the driver's.
libraries_of() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libcuda|ld-linux[^/]*)\.so'
}

pack() {
  local kit=$1 top build program
  top=$(cd "$here/../.." && pwd)
  build=$top/build/release
  mkdir -p "$kit"/{bin,tests,lib} || exit 1
  for program in "${programs[@]}"; do
    [ -x "$build/$program" ] || die "$build/$program is not there: config/setup.sh build --preset release all"
    strip -o "$kit/$program" "$build/$program" || exit 1
  done
  libraries_of "${programs[@]/#/$build/}" | xargs -I LIBRARY cp -L LIBRARY "$kit/lib/"
  cp "$here/run.sh" "$kit/run.sh"
  say "$kit: $(du -sh "$kit" | cut -f1)"
}

# ------------------------------------------------------------------------------------------------------------------ running

failed=()

step() {  # NAME COMMAND...
  local name=$1
  shift
  printf '\n===== %s\n' "$name"
  "$@" || failed+=("$name")
}

run_images() {  # OPTIONS...: three epochs; the last line of each is its figure
  printf -- '--- %s\n' "$*"
  "$here/bin/millrace" run --private --cuda yes --backend cuda --dataset "$data" --epochs 3 --shuffle --batch 256 --slots 4 "$@" 2>&1
}

figures() {
  local failure=0 memory dtype
  for memory in host cuda:0; do
    for dtype in uint8 float16; do
      run_images --memory "$memory" --dtype "$dtype" || failure=1
    done
  done
  return $failure
}

sanitized() {
  if ! command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer is not here: not run"
    return 0
  fi
  compute-sanitizer --target-processes all --error-exitcode 9 "$here/bin/millrace" run --private --cuda yes --backend cuda --dataset "$data" \
    --memory cuda:0 --limit 512 --cache off
}

run() {
  data=$(cd "$1" && pwd) || exit 1
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib XDG_STATE_HOME=/dev/null NO_COLOR=1 MILLRACE_TEST_DATA=$data
  if ! "$here/bin/millrace-cuda"; then
    say "there is no GPU for this process"
    exit 77
  fi
  command -v nvidia-smi >/dev/null && nvidia-smi -L
  step "doctor" "$here/bin/millrace" doctor --private --cuda yes
  step "pixels, sharing, the owner's end" "$here/tests/millrace_system_cuda" "[gpu]" --durations yes
  step "conformance" "$here/tests/millrace_conformance"
  step "compute-sanitizer on the GPU's owner" sanitized
  step "images/s" figures
  step "what an image costs the host" "$here/bin/millrace_bench_host_cost" cuda "$data"
  printf '\n===== %s\n' "$([ ${#failed[@]} = 0 ] && echo "all steps passed" || echo "failed: ${failed[*]}")"
  [ ${#failed[@]} = 0 ]
}

case ${1:-} in
  help | -h | --help) usage ;;
  pack) pack "${2:-$(cd "$here/../.." && pwd)/build/gpu-kit}" ;;
  "") usage >&2; exit 2 ;;
  *) run "$1" ;;
esac
