#!/usr/bin/env bash
# Runs every fuzz target of a build over its committed corpus for a while; what is found new stays out of the tree.
#
#   tests/fuzz/run.sh BUILD [SECONDS] [NAME...]      for example: tests/fuzz/run.sh build/clang 60 fuzz_probe
#
# A crash is written to BUILD/fuzz/: make it a named file of the corpus, and the replay under ctest keeps it found.
set -euo pipefail

build=${1:?"usage: tests/fuzz/run.sh BUILD [SECONDS] [NAME...]"}
seconds=${2:-20}
shift $(($# < 2 ? $# : 2))
wanted=" $* "
case $seconds in '' | 0 | *[!0-9]*) echo "fuzz: \`$seconds\` is no number of seconds from 1 on: tests/fuzz/run.sh BUILD SECONDS NAME" >&2; exit 2 ;; esac

run_one() {  # NAME CORPUS DICTIONARY SECONDS
  local work log options=()
  work=$(mktemp -d)
  log=$work/log
  [ "$3" = - ] || options+=("-dict=$3")
  mkdir "$work/found"
  if "./$1" "$work/found" "$2" -max_total_time="$4" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "${options[@]}" >"$log" 2>&1; then
    printf 'fuzz: %-24s fine after %s runs\n' "$1" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    rm -rf "$work"
  else
    printf 'fuzz: %-24s FAILED\n' "$1"
    tail -n 60 "$log"
    rm -rf "$work"
    return 1
  fi
}
export -f run_one

[ -f "$build/fuzz/targets" ] || { echo "fuzz: $build has no fuzz targets: config/setup.sh test --preset clang -L fuzz builds them" >&2; exit 1; }
cd "$build/fuzz"
for name in "$@"; do
  cut -f1 targets | grep -qxF "$name" || { echo "fuzz: $build/fuzz/targets has no $name" >&2; exit 2; }
done
ran=0
lines=()
while IFS=$'\t' read -r name corpus dictionary; do
  [ "$wanted" = "  " ] || [[ $wanted == *" $name "* ]] || continue
  lines+=("$name" "$corpus" "$dictionary" "$seconds")
  ran=$((ran + 1))
done < <(sort targets)
[ "$ran" -gt 0 ] || { echo "fuzz: no such target in $build/fuzz/targets" >&2; exit 1; }
printf '%s\n' "${lines[@]}" | xargs -d '\n' -n 4 -P "$(nproc)" bash -c 'run_one "$@"' run_one
