#!/usr/bin/env bash
# Packs what a machine with a GPU and nothing of ours needs to say whether Millrace is right and fast there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$top/build/release
most_mib=48  # the kit and the checkout together

usage() {
  cat <<TEXT
usage: tests/gpu/run.sh pack [KIT] [DATA]
       tests/gpu/run.sh rehearse KIT OUT

pack makes the folder KIT (default build/gpu-kit), which git ignores: programs and libraries (of a release build with everything:
config/setup.sh build --preset release all), the Python package, the kernels' benchmark for sm_90 where nvcc is, 48 photographs and a dozen odd
JPEG files of DATA (default \$MILLRACE_TEST_DATA, or ../shared/data beside the checkout), their packed forms, and checksums of the tensors
that the CPU makes of them. KIT and the checkout are $most_mib MiB at most together.

On the machine with the GPU, where NVIDIA's driver 580 or newer is and Python 3 with NumPy, grpcio and protobuf:

    KIT/day1.py correct OUT     and then: speed, beside     (KIT/day1.py --help)

rehearse packs KIT and runs all three here, on the simulated driver of the release build, so that only a GPU can make them fail. Exit status 1: a step
failed.
TEXT
}

say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

programs=(bin/millraced bin/millrace bin/millrace-cuda bin/millrace-decoder bin/millrace-opener bin/millrace_bench_host_cost
  tests/millrace_system_cuda tests/millrace_system_client tests/millrace_conformance tests/millrace_in_user_namespace)

# Baseline files with everything that a header may have, and progressive ones, which the GPU gets packed.
odd=(cymk.jpg medium_vertical_samp_2500x1786.jpg mjpeg_huffman.jpg non_interleaved_420_64x64.jpg non_interleaved_422_64x64.jpg
  sampling_factors.jpg down_sampled_grayscale_prog.jpg four_components.jpg sos_news.jpeg weird_components.jpg 2029.jpg)

# Every library but those that belong to the machine: the C library, which is older here or the same, and the driver's.
libraries_of() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libcuda|ld-linux[^/]*)\.so'
}

pack_programs() {  # KIT
  local place program compiled
  place=$(mktemp -d)
  mkdir -p "$place"/{bin,tests,lib}
  for program in "${programs[@]}"; do
    [ -x "$build/$program" ] || die "$build/$program is not there: config/setup.sh build --preset release all"
    strip -o "$place/$program" "$build/$program"
  done
  libraries_of "${programs[@]/#/$build/}" | xargs -I LIBRARY cp -L LIBRARY "$place/lib/"
  "$top/tests/bench/cuda/run.sh" --compile-only || compiled=$?
  case ${compiled:-0} in
    0) strip -o "$place/bin/bench" "$top/build/cuda-bench/bench" ;;
    77) say "no benchmark of the kernels in the kit: see above" ;;
    *) die "the benchmark of the kernels does not compile: see above" ;;
  esac
  tar -C "$place" -cf - . | xz -T0 -6 >"$1/programs.tar.xz"
  rm -r "$place"
}

pack_images() {  # KIT DATA
  local file
  mkdir -p "$1"/images/{photos,odd}
  find "$2/photos" -iname '*.jp*g' | sort | sed -n 1,48p | xargs -I FILE cp FILE "$1/images/photos/"
  for file in "${odd[@]}"; do
    cp "$2/jpeg-variants/$file" "$1/images/odd/"
  done
  "$build/bin/millrace_cuda_checksums" "$1/images" "$1/checksums.txt" "$1/packed"
  find "$1/packed" -type f -size +256k -delete  # they are larger than their files, and the others are enough
}

pack_package() {  # KIT
  local wheel=("$top"/build/python-package/wheel/*.whl) changed
  [ -e "${wheel[0]}" ] || die "the Python package's wheel is not there: config/setup.sh test makes it"
  changed=$(find "$top"/client/python/src "$top"/proto/rpc -newer "${wheel[0]}" -name '*.p[yr]*' -not -path '*/_proto/*' -print -quit)
  [ -z "$changed" ] || die "$changed is newer than the wheel: config/setup.sh test makes it anew"
  cp "${wheel[0]}" "$1/"
}

pack() {  # KIT DATA
  local kit=$1 data=$2 mib
  [ -d "$data/photos" ] || die "$data has no photos/: say where the pictures are"
  rm -rf "$kit"
  mkdir -p "$kit"
  pack_programs "$kit"
  pack_images "$kit" "$data"
  pack_package "$kit"
  cp "$here"/{day1.py,frameworks.py,recipes.py,beside.py} "$top/tests/bench/cuda/dali_peer.py" "$kit/"
  git -C "$top" log -1 --format='%H %cI' >"$kit/commit"
  find "$kit" -type f -printf '%P\0' | sort -z | (cd "$kit" && xargs -0 sha256sum) >"$build/SHA256SUMS"
  mv "$build/SHA256SUMS" "$kit/"
  mib=$((($(du -sb "$kit" | cut -f1) + $(cd "$top" && git ls-files -z | du -cb --files0-from=- | tail -n 1 | cut -f1) + 1048575) / 1048576))
  say "$kit: $(($(du -sb "$kit" | cut -f1) / 1048576)) MiB; with the checkout $mib MiB"
  [ $mib -le $most_mib ] || die "that is more than $most_mib MiB: take something out"
}

rehearse() {  # KIT OUT
  local day status=0 data=${MILLRACE_TEST_DATA:-$top/../shared/data}
  if [ ! -d "$data/photos" ]; then
    say "skipped: $data has no photos/"
    return 77
  fi
  pack "$1" "$data"
  export LD_LIBRARY_PATH=$build/tests/support/cuda_driver/lib SIM_CUDA_STRICT=0 MILLRACE_SOAK_SECONDS=${MILLRACE_SOAK_SECONDS:-10}
  for day in correct speed beside; do
    "${PYTHON:-python3}" "$1/day1.py" $day "$2" || status=1
  done
  return "$status"
}

case ${1:-} in
  help | -h | --help) usage ;;
  pack) pack "${2:-$top/build/gpu-kit}" "${3:-${MILLRACE_TEST_DATA:-$top/../shared/data}}" ;;
  rehearse) [ $# = 3 ] || { usage >&2; exit 2; }; rehearse "$2" "$3" ;;
  *) usage >&2; exit 2 ;;
esac
