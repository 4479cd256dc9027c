#!/bin/sh
# `cmake --install` gives a daemon with settings and a systemd unit that name what is installed, and a libmillrace that others can build with: through find_package(Millrace) and through pkg-config, from a folder
# that knows nothing of this tree, with headers that need only the standard library.
#
#   install_test.sh BUILD_FOLDER SOURCE_FOLDER CXX
set -eu
build=$1
source=$2
cxx=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP  # dash runs no EXIT trap otherwise

fail() {
  echo "install_test: $*" >&2
  exit 1
}

# The daemon alone: its settings are read where they lie, and the unit starts what is there.
cmake --install "$build" --component daemon --prefix "$folder/alone" > "$folder/install.log"
"$folder/alone/bin/millraced" --config "$folder/alone/etc/millrace/millrace.toml" --check-config > "$folder/settings" ||
  fail "the installed settings are not taken"
grep -q "^\[lanes\]" "$folder/settings" || { cat "$folder/settings" >&2; fail "--check-config prints no settings"; }
grep -q "^ExecStart=.*/millraced --config .*/millrace.toml" "$folder/alone/lib/systemd/system/millraced.service" ||
  fail "the unit does not start millraced with its settings"
[ -x "$folder/alone/libexec/millrace/millrace-opener" ] || fail "the opener is not installed with the daemon"
[ ! -e "$folder/alone/include" ] || fail "the daemon's component brings headers"

# It serves with those settings, its decoders in processes of the program that was installed for it, and the command line's component asks it.
cmake --install "$build" --component command_line --prefix "$folder/client" > "$folder/install.log"
mkdir "$folder/root"
sed 's/^#isolation = .*/isolation = "process"/' "$folder/alone/etc/millrace/millrace.toml" > "$folder/isolated.toml"
grep -q '^isolation = "process"' "$folder/isolated.toml" || fail "the installed settings do not show cpu.isolation"
XDG_STATE_HOME=$folder "$folder/alone/bin/millraced" --config "$folder/isolated.toml" --socket "$folder/millrace.sock" \
  --root "$folder/root" > "$folder/said" 2> "$folder/errors" &
daemon=$!
trap 'kill "$daemon" 2> /dev/null || true; rm -rf "$folder"' EXIT
until grep -q "listening on $folder/millrace.sock" "$folder/said"; do
  kill -0 "$daemon" 2> /dev/null || { cat "$folder/errors" >&2; fail "the installed daemon does not start"; }
  sleep 0.05
done
[ "$(readlink "/proc/$daemon/exe")" = "$folder/alone/bin/millraced" ] || fail "another millraced was started"
"$folder/client/bin/millrace" ping --count 1 --socket "$folder/millrace.sock" > "$folder/answer" ||
  { cat "$folder/errors" >&2; fail "the installed daemon does not answer the installed command line"; }
grep -q "(pid $daemon) is serving at unix:$folder/millrace.sock" "$folder/answer" || { cat "$folder/answer" >&2; fail "somebody else has answered"; }
kill "$daemon"
wait "$daemon" || fail "the installed daemon does not stop as asked"
trap 'rm -rf "$folder"' EXIT

# Everything, as the README says.
cmake --install "$build" --prefix "$folder/usr" > "$folder/install.log"
for program in millraced millrace; do
  [ -x "$folder/usr/bin/$program" ] || fail "$program is not installed"
done
headers=$folder/usr/include/millrace
if grep -rnE '#include [<"](proto|client|daemon|google|grpc|boost)' "$headers"; then
  fail "an installed header includes what is not installed"
fi

# Each header alone, with every warning, in C++20 and nothing else in the include path.
for header in "$headers"/*.h; do
  echo "#include <millrace/$(basename "$header")>" > "$folder/alone.cc"
  "$cxx" -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$folder/usr/include" "$folder/alone.cc"
done

# As a CMake project.
mkdir "$folder/project"
cp "$source"/client/examples/*.cc "$folder/project"
cat > "$folder/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES CXX)
find_package(Millrace 0.1 REQUIRED)
foreach(example ten_lines epoch serve)
  add_executable(${example} ${example}.cc)
  target_link_libraries(${example} PRIVATE Millrace::Millrace)
endforeach()
END
cmake -G Ninja -S "$folder/project" -B "$folder/project/build" -DCMAKE_PREFIX_PATH="$folder/usr" -DCMAKE_CXX_COMPILER="$cxx" > "$folder/cmake.log" ||
  { cat "$folder/cmake.log" >&2; fail "find_package(Millrace) does not work"; }
cmake --build "$folder/project/build" > "$folder/cmake.log" 2>&1 || { cat "$folder/cmake.log" >&2; fail "the examples do not build"; }

# Through pkg-config.
PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name millrace.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$source/client/examples/ten_lines.cc" -o "$folder/ten_lines" $(pkg-config --cflags --libs millrace)
[ "$(pkg-config --modversion millrace)" = "$("$folder/usr/bin/millrace" --version | cut -d' ' -f2)" ] || fail "the versions differ"

# They run: without a daemon each says so, and how to start one.
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export LD_LIBRARY_PATH
for program in "$folder/ten_lines" "$folder/project/build/ten_lines"; do
  if MILLRACE_SOCKET="$folder/none.sock" "$program" / 2> "$folder/errors"; then fail "$program found a daemon where none is"; fi
  grep -q "systemctl start millraced" "$folder/errors" || { cat "$folder/errors" >&2; fail "$program does not say what to do"; }
done

# A shared library shows its own names and nobody else's.
if [ -e "$LD_LIBRARY_PATH/libmillrace.so" ]; then
  if nm -DC --defined-only "$LD_LIBRARY_PATH/libmillrace.so" | grep -E ' (grpc|google|absl)::| millrace::v1::' | grep -q -v ' [Vuw] '; then
    fail "libmillrace.so shows names of gRPC or of the messages"
  fi
fi
echo "install_test: fine"
