#!/bin/sh
# Takes a change from its design to where it is applied. Where it stands is in the
# store and nowhere else, so whoever runs this after it was killed goes on there.
set -eu
. ./lib.sh
run="$1"

field() { onceseal runs show "$run" --json | sed -n "s/.*\"$1\":\"\([a-z-]*\)\".*/\1/p"; }
move() { onceseal runs transition "$run" "$1" > /dev/null 2>&1; }
is_planned() { onceseal runs show "$run" --json | grep -q '"plan":{'; }

# Asks a person about the design and the plan, and binds what was approved. Asked
# again, it is the same request. 1: somebody has still to answer, or said no.
deliver() {
  approved=0
  for of in gate-a:design.md gate-b:plan.json; do
    gate="${of%%:*}" file="${of#*:}"
    asked="$(onceseal runs deliver "$run" "$gate" 1 --receipt-file "$file" --ask --json 2>&1)"
    approval="$(echo "$asked" | sed -n 's/.*"approval":"\(apr_[0-9a-f]*\)".*/\1/p')"
    case "$asked" in
      *'"status":"granted"'*)
        onceseal runs deliver "$run" "$gate" 1 --receipt-file "$file" --approval "$approval" > /dev/null 2>&1
        point "bound-$gate" ;;
      *'"status":"pending"'*)
        echo "to be approved: $file, onceseal approve $approval"
        approved=1 ;;
      *'"items":[]'*)
        # Bound before.
        ;;
      *)
        echo "not bound: $file; if it was denied, change it, and it is asked anew: $asked"
        approved=1 ;;
    esac
  done
  return "$approved"
}

while :; do
  state="$(field state)"
  point "$state"
  case "$state" in
    created)
      move validating-delivery ;;
    validating-delivery)
      # Planned only if both gates are bound: what a person denied is not.
      if deliver && onceseal tasks plan "$run" 1 plan.json > /dev/null; then
        point planned
        move ready
      else
        move approval-needed
        exit 3
      fi ;;
    approval-needed)
      onceseal runs command "$run" resume > /dev/null 2>&1 ;;
    ready)
      move running ;;
    running)
      # Two workers; which of them does what is decided task by task. However this
      # ends, the other one ends with it.
      onceseal tasks work "$run" --check ./check.sh --until-empty --for 3s -- ./work.sh &
      other=$!
      trap 'kill "$other" 2> /dev/null && wait "$other"' EXIT
      trap 'exit 1' HUP INT TERM
      mine=0 others=0
      onceseal tasks work "$run" --check ./check.sh --until-empty --for 3s -- ./work.sh || mine=$?
      wait "$other" || others=$?
      trap - EXIT HUP INT TERM
      if [ "$mine" -ne 0 ] || [ "$others" -ne 0 ]; then
        echo "not every task is verified: onceseal runs blockers $run" >&2
        exit 1
      fi
      point worked
      move change-verifying ;;
    change-verifying)
      [ "$(sort "$SITE/lines")" = "$(printf 'account\ndocs\nform\npage')" ]
      move ready-to-apply ;;
    ready-to-apply)
      move applying ;;
    applying)
      ./once.sh site.apply "$run" "$SITE/applied" all
      point applied
      move completed ;;
    paused)
      # Whoever worked on it is gone, and left it here.
      if is_planned; then move ready; else move validating-delivery; fi ;;
    recovering)
      move applying ;;
    completed)
      exit 0 ;;
    *)
      echo "the run is $state" >&2
      exit 1 ;;
  esac
done
