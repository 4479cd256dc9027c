# shellcheck shell=bash disable=SC2154
# config/setup.sh docs: the documentation as a site. Sourced by setup.sh, whose functions and variables it uses.

# All anew every time: Sphinx says nothing again of pages that it has read before.
docs() {
  [ $# = 0 ] || misused "docs takes nothing"
  local began=$SECONDS pages=$top/build/docs-pages
  deps docs
  python_with venv-docs config/requirements-docs.txt
  clocked installing $((SECONDS - began))
  rm -rf "$top/build/docs" "$pages"
  mkdir -p "$pages"
  "$top/build/venv-docs/bin/sphinx-build" -q -W --keep-going -c "$top/config/docs" -d "$pages/.doctrees" "$pages" "$top/build/docs" ||
    die "docs: what is wrong is above; the pages of the site are listed in config/docs/conf.py"
  say "made build/docs/index.html"
}
