# shellcheck shell=bash disable=SC2154
# config/setup.sh build and package: configuring, compiling, and what both say of it. Sourced by setup.sh, whose functions and variables it uses.

jobs_for_this_machine() {  # one a core, but no more than memory allows at 1.5 GiB each
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "${memory:-1}" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# MiB: what tests need free in /dev/shm, and what a /dev/shm of their own has: half of the memory, as on every host. A quarter of that may be in
# use by others before root's rights are asked for.
shared_for_tests() { awk '/^MemTotal:/ { half = int($2 / 2048); most = int(half * 3 / 4); print (most < 8192 ? most : 8192), half }' /proc/meminfo; }

# Tests wait for each other's processes and for the disk more than they compute. Each may have 192 MiB of /dev/shm.
jobs_for_tests() {
  local jobs shared needed own
  jobs=$(($(nproc) < 16 ? $(nproc) * 2 + 1 : 32))
  read -r needed own < <(shared_for_tests)
  shared=$(df --output=avail -m /dev/shm | tail -n 1)
  [ "$shared" -ge "$needed" ] || ! can_mount || shared=$own
  shared=$((shared / 192))
  [ "$shared" -ge 1 ] || shared=1
  echo $((jobs < shared ? jobs : shared))
}

become=()  # what makes the next command root's
can_mount() {
  [ "$(id -u)" = 0 ] || become=(sudo -E)
  "${become[@]}" unshare --mount true 2>/dev/null
}

# Runs a command where /dev/shm has room for tests. A container has 64 MiB unless it is given more: there root, or a user with sudo, gets a /dev/shm
# for this command alone.
with_shared_memory() {  # COMMAND...
  local free needed own
  read -r needed own < <(shared_for_tests)
  free=$(($(df --output=avail -m /dev/shm | tail -n 1)))
  if [ "$free" -lt "$needed" ] && can_mount; then
    say "/dev/shm has $free MiB free: the tests get one of their own"
    # shellcheck disable=SC2016  # for the inner shell
    "${become[@]}" unshare --mount env PATH="$PATH" HOME="$HOME" bash -c '
      mount -t tmpfs -o "size=$1m,mode=1777" millrace-tests /dev/shm || exit
      [ "$2" = 0 ] || as_user=(setpriv --reuid "$2" --regid "$3" --init-groups)
      exec "${as_user[@]}" "${@:4}"' with_shared_memory "$own" "$(id -u)" "$(id -g)" "$@"
  elif [ "$free" -lt 1024 ]; then
    die "tests need 1 GiB of /dev/shm, which has $free MiB free, and this user cannot give them a /dev/shm of their own:" \
      "docker run --shm-size=8g; or, as root: mount -o remount,size=8G /dev/shm"
  else
    "$@"
  fi
}

logged() {  # LOG COMMAND...: shows nothing but the end of the log when the command fails
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 && return 0
  tail -n 40 "$log" >&2
  die "failed: $*; the whole log is $log"
}

# Where config/cmake/MillraceGpuKernels.cmake looks for it.
find_nvcc() {
  local nvcc
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc "$top"/build/venv-cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    [ ! -x "$nvcc" ] || ! "$nvcc" --version 2>/dev/null | grep -qE 'release (1[3-9]|[2-9][0-9])\.' || { echo "$nvcc"; return 0; }
  done
  return 1
}

cuda_toolkit() {  # DRY
  local nvcc
  if nvcc=$(find_nvcc); then
    say "CUDA compiler: $nvcc"
  elif [ "$1" = yes ]; then
    say "would install from PyPI into build/venv-cuda: $(grep -v '^#' "$top/config/requirements-cuda.txt" | tr '\n' ' ')"
  else
    python_with venv-cuda config/requirements-cuda.txt
    nvcc=$(find_nvcc) || die "NVIDIA's wheels in build/venv-cuda have no nvcc that runs"
    ln -sfn lib "${nvcc%/bin/nvcc}/lib64"  # where nvcc has the linker look
  fi
}

configure() {  # PRESET [-DNAME=VALUE...]
  (cd "$top" && logged "$top/build/$1/configure.log" cmake --preset "$@")
}

# What ninja's log has got since it had OFFSET bytes, and ccache's since the build began: "420 objects, 17 of them from ccache, 790 s of one core".
share_of_build() {  # PRESET OFFSET
  local objects spent hits
  read -r objects spent < <(tail -c "+$(($2 + 1))" "$top/build/$1/.ninja_log" | awk -F'\t' '
    NF == 5 { spent[$4] = $2 - $1 }
    END {
      for (output in spent) { all += spent[output]; objects += output ~ /\.o$/ }
      printf "%d %.0f\n", objects, all / 1000
    }')
  hits=$(grep -cE '^(direct|preprocessed)_cache_hit' "$top/build/$1/ccache.log" || true)
  clocked objects "$objects"
  clocked hits "$hits"
  printf '%d objects, %d of them from ccache, %d s of one core\n' "$objects" "$hits" "$spent"
}

# ccache fails where it cannot make its folder, and the whole build with it.
use_ccache_if_it_can_write() {
  local folder
  command -v ccache >/dev/null || return 0
  folder=$(ccache --get-config cache_dir 2>/dev/null) || return 0
  ! mkdir -p "$folder" 2>/dev/null || [ ! -w "$folder" ] || return 0
  export CCACHE_DIR=$top/build/ccache
  say "ccache cannot write to $folder: it uses build/ccache"
}

compile() {  # PRESET TARGETS...
  local preset=$1 began=$SECONDS ninja log=$top/build/$1/.ninja_log offset
  shift
  offset=$(stat -c %s "$log" 2>/dev/null || echo 0)
  : >"$top/build/$preset/ccache.log"
  export CCACHE_STATSLOG=$top/build/$preset/ccache.log
  ninja=(env "NINJA_STATUS=[%f/%t, %e s] " ninja -C "$top/build/$preset" -j "$(jobs_for_this_machine)" "$@")
  use_ccache_if_it_can_write
  if [ -t 2 ]; then
    "${ninja[@]}" >&2 || { clocked compiling $((SECONDS - began)); die "the build failed: see above"; }
  else
    say "building $preset (log: build/$preset/build.log)"
    (logged "$top/build/$preset/build.log" "${ninja[@]}") || { clocked compiling $((SECONDS - began)); exit 1; }
  fi
  clocked compiling $((SECONDS - began))
  say "built $preset in $((SECONDS - began)) s: $(share_of_build "$preset" "$offset")"
}

# Only the programs, and without what tests need, on a machine where nothing was configured for tests before.
build_programs() {  # PRESET TARGETS...
  local preset=$1
  shift
  if [ -e "$top/build/$preset/build.ninja" ]; then configure "$preset"; else configure "$preset" -DMILLRACE_BUILD_TESTS=OFF; fi
  compile "$preset" "$@"
}

build() {
  local preset=release
  if [ "${1:-}" = --preset ]; then
    [ $# -ge 2 ] || misused "--preset needs a name"
    preset=$2
    shift 2
  fi
  if [ "$preset" = cuda ]; then
    deps --cuda build test
    configure cuda
    [ $# -gt 0 ] || set -- millrace_cuda
    compile cuda "$@"
    return
  fi
  if [ $# -gt 0 ]; then
    deps build test
    configure "$preset" -DMILLRACE_BUILD_TESTS=ON -DMILLRACE_BENCHMARKS=ON
    compile "$preset" "$@"
  else
    deps build
    build_programs "$preset" bin/millraced bin/millrace-opener bin/millrace libmillrace
  fi
}

# Hardened in what costs nothing; two builds of one commit are equal, byte for byte.
package() {
  [ $# = 0 ] || misused "package takes nothing"
  local tree=$top/build/package log=$top/build/packages/cpack.log
  deps build package
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || date +%s)}
  export SOURCE_DATE_EPOCH
  mkdir -p "$tree"
  (cd "$top" && logged "$tree/configure.log" cmake --preset release -B "$tree" -DCMAKE_INSTALL_PREFIX=/usr -DMILLRACE_BUILD_TESTS=OFF \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro,-z,now -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,relro,-z,now)
  compile package all
  rm -rf "$top/build/packages"
  mkdir -p "$top/build/packages"
  (umask 022; cd "$tree" && logged "$log" cpack -G DEB -B "$top/build/packages")
  rm -rf "$top/build/packages/_CPack_Packages"
  lintian --allow-root --fail-on error "$top"/build/packages/*.deb || die "lintian objects: see above"
  ls -1 "$top"/build/packages/*.deb
}
