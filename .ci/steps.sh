# shellcheck shell=bash
# Steps of which every one runs, whatever became of those before, and what is said at the end. Sourced by .ci/run.

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=()
began=$SECONDS

step() {  # NAME COMMAND...
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n===== %s\n' "$name"
  MILLRACE_CLOCK=$(log_of "$name").clock "$@" 2>&1 | tee "$(log_of "$name")"
  status=${PIPESTATUS[0]}
  printf '===== %s: %s in %d s (%d s in all)\n' "$name" "$([ "$status" = 0 ] && echo fine || echo FAILED)" \
    $((SECONDS - start)) $((SECONDS - began))
  printf '%s\t%s\t%s\n' "$name" $((SECONDS - start)) "$(log_of "$name")" >>"$logs/steps"
  [ "$status" = 0 ] || failed+=("$name")
}

log_of() { printf '%s/%s\n' "$logs" "${1//[^A-Za-z0-9+]/_}"; }  # NAME

# Says at the end how ctest fared in one step, what all of them skipped, and last, so that nobody overlooks it, what failed and how.
# Its status is 1 if something did.
report() {  # STEP TITLE=FILE...
  local name
  printf '\n===== what time went to, %d s in all\n' $((SECONDS - began))
  python3 .ci/clock.py "$logs/steps" build
  printf '\n===== %s again\n' "$1"
  sed -n '/ tests passed/,/^Skipped: /{/^Skipped: /!p}' "$(log_of "$1")"
  printf '\n'
  python3 tests/support/skips.py "${@:2}"
  for name in "${failed[@]}"; do
    printf '\n===== failed: %s\n' "$name"
    last_words "$(log_of "$name")"
  done
  [ ${#failed[@]} = 0 ]
}

last_words() {  # LOG: ctest's list of what failed, or the last lines
  if grep -q '^The following tests FAILED:' "$1"; then
    sed -n '/^The following tests FAILED:/,/^Errors while running CTest/{/^Errors while/!p}' "$1"
  else
    tail -n 20 "$1"
  fi
}
