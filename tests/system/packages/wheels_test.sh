#!/bin/sh
# The wheels that `config/setup.sh wheels` has made are all that somebody needs who has Python: installed into virtual environments of their own,
# they bring a daemon that reads a folder, its helper programs, and every library but glibc's. Nothing of the build or of $PATH has a part in it:
# the first millraced in $PATH is one that fails. What the client's wheel depends on comes from PyPI.
#
#   wheels_test.sh WHEELS [DRIVER]     DRIVER: a folder with a libcuda.so.1, the simulated one's for example; without it no GPU is tried
set -eu
wheels=$(cd "$1" && pwd)
driver=${2:+$(cd "$2" && pwd)}
test=$(cd "$(dirname "$0")" && pwd)/wheels_test.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP  # dash runs no EXIT trap otherwise

fail() {
  echo "wheels_test: $*" >&2
  exit 1
}

mkdir "$folder/bin" "$folder/home"
printf '#!/bin/sh\necho "wheels_test: this is the millraced of PATH" >&2\nexit 1\n' > "$folder/bin/millraced"
cp "$folder/bin/millraced" "$folder/bin/millrace"
chmod +x "$folder/bin/millraced" "$folder/bin/millrace"
cp "$test" "$folder/wheels_test.py"
cd "$folder"

check() {  # WHEEL [LIBRARY OF THE HOST'S...]
  wheel=$1
  shift
  echo "wheels_test: $(basename "$wheel")"
  python3 -m venv --clear "$folder/venv"
  "$folder/venv/bin/pip" install --disable-pip-version-check -q "$(echo "$wheels"/millrace-*.whl)[daemon]" "$wheel" || fail "pip does not install $wheel"
  "$folder/venv/bin/pip" check --disable-pip-version-check || fail "what was installed does not fit together"
  for program in "$folder"/venv/lib/python3*/site-packages/millrace_daemon/bin/*; do
    ! ldd "$program" | grep "not found" || fail "$program lacks libraries"
  done
  env -i HOME="$folder/home" PATH="$folder/bin:/usr/bin:/bin" LANG=C.UTF-8 DRIVER="$driver" \
    "$folder/venv/bin/python" -I "$folder/wheels_test.py" "$@" || fail "$(basename "$wheel") does not do"
}

for wheel in "$wheels"/millrace_daemon-*.whl; do
  [ -e "$wheel" ] || fail "there is no wheel of the daemon in $wheels"
  case $(python3 -m zipfile -l "$wheel") in
    *millrace_daemon/lib/libstdc++*) check "$wheel" ;;
    *) check "$wheel" libstdc++.so.6 libgcc_s.so.1 ;;
  esac
done
