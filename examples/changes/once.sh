#!/bin/sh
# once.sh ACTION RUN FILE LINE: writes a line to a file, once. Whoever was killed
# while it was written leaves it unknown, and then the file is asked.
set -u
. ./lib.sh
action="$1" run="$2" file="$3" line="$4"
mkdir -p "$(dirname "$file")"
while :; do
  if said="$(onceseal exec "$action" --arg "run=$run" --arg "file=$file" --arg "line=$line" --json -- ./write.sh "$file" "$line" 2>&1)"; then
    exit 0
  fi
  case "$said" in
    *'"code":"duplicate"'*)
      exit 0 ;;
    *'"code":"in_progress"'*)
      # Of somebody who is gone, until its lease has ended.
      sleep 0.2 ;;
    *'"code":"ambiguous"'* | *'"code":"lease_lapsed"'* | *'"code":"outcome_unknown"'*)
      if grep -qx "$line" "$file" 2> /dev/null; then what=committed; else what=failed; fi
      # As it is said and not put together: what would end a part of it is escaped.
      key="$(echo "$said" | sed -n 's/.*"effect_key":"\([^"]*\)".*/\1/p')"
      onceseal resolve "$key" "--$what" --reason "looked into $file" > /dev/null 2>&1 || sleep 0.2 ;;
    *)
      echo "$said" >&2
      exit 75 ;;
  esac
done
