#!/usr/bin/env bash
# Compiles the CUDA kernels' benchmark with nvcc alone, and runs it: correctness, compute-sanitizer, figures, nvJPEG and DALI beside them. For a
# machine with a GPU, a CUDA toolkit and this checkout; nothing else has to be installed.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=$top/build/cuda-bench

usage() {
  cat <<TEXT
usage: tests/bench/cuda/run.sh [--compile-only] [--no-sanitizer] [DATA] [BENCH OPTIONS]

  DATA  a folder of JPEG files, or one that has photos/ (default: \$MILLRACE_TEST_DATA, or ../shared/data beside the checkout)

Compares with DATA's checksums in build/cuda-checksums.txt, or those of --checksums FILE, which are made where Millrace is built:
    config/setup.sh build bin/millrace_cuda_checksums && build/release/bin/millrace_cuda_checksums DATA build/cuda-checksums.txt
Bench options: --checksums FILE --packed FOLDER --repeat N --images N --batch N --threads N --tiles N --seconds S --only-check --every N. nvJPEG's library is looked for in
build/venv-cuda (config/setup.sh deps --cuda, or pip install nvidia-nvjpeg there) and where the loader looks; DALI in python3's packages, or
those of \$DALI_PYTHON. Exit status: 1 a wrong tensor or a complaint of the sanitizer; 77 there is no GPU, or no compiler.
TEXT
}

say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

find_nvcc() {
  local nvcc
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc "$top"/build/venv-cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    if [ -x "$nvcc" ] && "$nvcc" --version >/dev/null 2>&1; then
      echo "$nvcc"
      return 0
    fi
  done
  return 1
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }

# Everything anew when a source, the compiler or a flag has changed.
compile() {
  local nvcc flags sources
  if ! nvcc=$(find_nvcc); then
    say "no nvcc: install a CUDA toolkit, or config/setup.sh deps --cuda"
    exit 77
  fi
  flags=(-std=c++20 -O3 -DNDEBUG -lineinfo -fmad=false "-I$top" -Xcompiler=-ffp-contract=off -DMILLRACE_HAS_KERNEL_IMAGE)
  if has_gpu; then flags+=(-arch=native); else flags+=(-arch=sm_90); fi
  if [ -x "$build/bench" ] && [ -z "$(find "$top/kernels" "$top"/proto/{base,cuda} "$top/daemon/backend/cuda" "$top/tests/bench/cuda" \
    -newer "$build/bench" -name '*.[hcS]*' -print -quit)" ] &&
    [ "$(cat "$build/flags")" = "$nvcc ${flags[*]}" ]; then
    return 0
  fi
  mkdir -p "$build"
  echo "$nvcc ${flags[*]}" >"$build/flags"
  # without_xxhash/ has what hash.cc has.
  mapfile -t sources < <(find kernels/{base,augment,jpeg,packed,tensor,cpu,cuda} -name '*.cc' -not -path kernels/base/hash.cc -not -path 'kernels/cpu/png/*' | sort)
  sources+=(proto/cuda/driver.cc daemon/backend/cuda/worker/{batch_launch,kernel_image}.cc tests/bench/cuda/*.c[cu]
    tests/bench/cuda/without_xxhash/*.cc)
  say "compiling the kernels and ${#sources[@]} files with $nvcc"
  "$nvcc" "${flags[@]}" -fatbin -o "$build/kernels.fatbin" kernels/cuda/kernels.cu || die "the kernels do not compile"
  "${NVCC_CCBIN:-g++}" -c "-DMILLRACE_KERNEL_IMAGE=\"$build/kernels.fatbin\"" -o "$build/kernel_image.o" daemon/backend/cuda/worker/kernel_image.S ||
    die "the kernels cannot be embedded"
  # shellcheck disable=SC2016  # the inner shell expands it
  printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I SOURCE bash -c '"${@:3}" -c "$2" -o "$1/${2//\//_}.o"' _ "$build" SOURCE "$nvcc" "${flags[@]}" ||
    die "a file does not compile"
  sources=("${sources[@]//\//_}")
  (cd "$build" && "$nvcc" -cudart static -o bench "${sources[@]/%/.o}" kernel_image.o -ldl -lpthread)
}

# Each tool on a twentieth of the tensors, whose checksums are compared, too.
sanitize() {
  local tool
  if ! command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer is not here: not run"
    return 0
  fi
  for tool in memcheck racecheck synccheck; do
    say "compute-sanitizer --tool $tool"
    compute-sanitizer --tool $tool --error-exitcode 9 "$build/bench" "$data" --checksums "$checksums" --only-check --every 20 ||
      die "compute-sanitizer --tool $tool complains: see above"
  done
}

beside_dali() {
  local status=0
  "${DALI_PYTHON:-python3}" "$top/tests/bench/cuda/dali_peer.py" "$photos" || status=$?
  [ $status != 77 ] || say "DALI is not installed: not compared"
}

data=${MILLRACE_TEST_DATA:-$top/../shared/data}
checksums=$top/build/cuda-checksums.txt
sanitizer=yes compile_only=no options=()
while [ $# -gt 0 ]; do
  case $1 in
    help | -h | --help) usage; exit 0 ;;
    --compile-only) compile_only=yes ;;
    --no-sanitizer) sanitizer=no ;;
    --checksums) checksums=$2; shift ;;
    --only-check) options+=("$1") ;;
    --*) options+=("$1" "$2"); shift ;;
    *) data=$1 ;;
  esac
  shift
done

cd "$top"
compile
[ $compile_only = no ] || exit 0
if ! has_gpu; then
  say "compiled, but there is no GPU"
  exit 77
fi
[ -e "$checksums" ] || die "no checksums in $checksums: see --help for how they are made"
photos=$data
[ ! -d "$data/photos" ] || photos=$data/photos
[ $sanitizer = no ] || sanitize
for library in "$top"/build/venv-cuda/lib/python3*/site-packages/nvidia/cu13/lib/libnvjpeg.so.13; do
  [ ! -e "$library" ] || export NVJPEG_LIBRARY=$library
done
"$build/bench" "$data" --checksums "$checksums" "${options[@]}"
case " ${options[*]} " in *" --only-check "*) ;; *) beside_dali ;; esac
