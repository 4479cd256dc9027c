# shellcheck shell=bash disable=SC2154
# config/setup.sh wheels: the Python wheels of the client and of the daemon. Sourced by setup.sh, whose functions and variables it uses.

# Two builds of one commit are equal, byte for byte.
wheels() {
  local programs=$top/build/release/bin
  if [ "${1:-}" = --programs ]; then
    [ $# -ge 2 ] || misused "--programs needs a folder"
    programs=$(cd "$2" && pwd) || die "wheels: there is no folder $2"
    shift 2
    [ $# = 0 ] || misused "wheels takes --programs FOLDER or nothing"
    deps wheels
  else
    [ $# = 0 ] || misused "wheels takes --programs FOLDER or nothing"
    deps --cuda build wheels
    build_programs release bin/millraced bin/millrace bin/millrace-decoder bin/millrace-cuda
  fi
  python_with venv-wheels config/requirements-wheels.txt
  same_versions "$programs"
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || date +%s)}
  export SOURCE_DATE_EPOCH
  umask 022
  rm -rf "$top/build/wheels"
  mkdir -p "$top/build/wheels"
  python_wheel venv-wheels --no-build-isolation
  cp "$top"/build/python-package/wheel/*.whl "$top/build/wheels"
  daemon_wheel "$programs"
  daemon_wheel "$programs" --host-gcc
  (cd "$top/build/wheels" && ls -1 ./*.whl)
}

# The client asks for a daemon of its own version.
same_versions() {  # PROGRAMS
  local said wheel
  said=$("$1/millraced" --version) || die "wheels: $1/millraced does not run"
  for wheel in client/python config/packages/wheel; do
    grep -qxF "version = \"${said#millraced }\"" "$top/$wheel/pyproject.toml" ||
      die "wheels: $1/millraced is of version ${said#millraced }, and $wheel/pyproject.toml says another"
  done
  grep -qF "\"millrace-daemon==${said#millraced }\"" "$top/client/python/pyproject.toml" ||
    die "wheels: client/python/pyproject.toml asks for a daemon of another version than ${said#millraced }"
}

# auditwheel grafts nothing, because everything is there already: it says what the wheel runs on, and writes it into the wheel's name.
daemon_wheel() {  # PROGRAMS [--host-gcc]
  local grafted tree=$top/build/daemon-wheel log=$top/build/daemon-wheel.log bin=$top/build/venv-wheels/bin
  (
    PATH=$bin:$PATH
    logged "$log" python "$top/config/packages/wheel/collect.py" "$@" "$tree"
    logged "$log" python -m pip wheel --disable-pip-version-check -q --no-deps --no-build-isolation -w "$tree/wheel" "$tree"
    logged "$log" auditwheel repair -w "$tree/repaired" "$tree"/wheel/*.whl
  )
  grafted=$(python3 -m zipfile -l "$tree"/repaired/*.whl) || die "wheels: auditwheel has made none: $log"
  case $grafted in
    *.libs/*) die "wheels: auditwheel has found libraries that config/packages/wheel/collect.py did not: $log" ;;
  esac
  say "platform tag: $(sed -n 's/.*New filename tags: //p' "$log") ($([ "${2:-}" = --host-gcc ] && echo "with the host's libstdc++" || echo "with everything but glibc"))"
  cp "$tree"/repaired/*.whl "$top/build/wheels"
}
