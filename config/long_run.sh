# shellcheck shell=bash disable=SC2154
# config/setup.sh test --all, the long run: what a change has to pass (.ci/run), and all that is too slow or too rare for that. tests/README.md says
# what. Sourced by setup.sh, whose functions and variables it uses.

long_run() {
  [ $# = 0 ] || misused "test --all takes nothing"
  local setup=$top/config/setup.sh release="g++ release, every test" sanitized='^(unit|conformance|integration|system|fuzz)$'
  local lists=("release=build/release/skipped.txt" "clang=build/clang/skipped.txt" "tsan=build/tsan/skipped.txt")
  cd "$top" || die "there is no folder $top"
  # shellcheck source=.ci/steps.sh
  . .ci/steps.sh
  set +e  # every step runs, whatever became of those before
  rm -f "${lists[@]#*=}"
  step "Debian packages" "$setup" deps --cuda build test check package wheels long
  step "$release" "$setup" test --preset release --frameworks --long
  step "Debian packages of ours, lintian" "$setup" package
  step "Python wheels of ours" "$setup" wheels
  step "wheels, installed and used" tests/system/wheels_test.sh build/wheels build/release/tests/support/cuda_driver/lib
  step "wheels on Debian 13" tests/system/wheels_elsewhere.sh build/wheels trixie
  step "clang: thread-safety analysis, ASan + UBSan" env MILLRACE_TEST_ROUNDS=4 "$setup" test --preset clang --offline --long -L "$sanitized"
  step "fuzzing, 60 seconds a target" tests/fuzz/run.sh build/clang 60
  step "g++ TSan" "$setup" test --preset tsan --offline --long -L "$sanitized"
  report "$release" "${lists[@]}"
}
