#!/bin/sh
# Takes a change from its design to where it is applied. Where it stands is in the
# store and nowhere else, so whoever runs this after it was killed goes on there.
set -eu
. ./lib.sh
run="$1"

shown() { onceseal runs show "$run" --json; }
field() { shown | sed -n "s/.*\"$1\":\"\([a-z-]*\)\".*/\1/p"; }
move() { onceseal runs transition "$run" "$1" --json > /dev/null; }
planned() { shown | sed -n 's/.*"plan":{[^}]*"revision":\([0-9]*\).*/\1/p'; }
digest() { sha256sum "$1" | cut -d ' ' -f 1; }

# bound GATE REVISION: the digest that is bound there, if one is.
bound() {
  shown | tr '{' '\n' \
    | sed -n "s/.*\"gate\":\"$1\",\"receipt\":\"sha256:\([0-9a-f]*\)\".*\"revision\":$2[,}].*/\1/p"
}

# The revision to be asked for: the newest, or the next one if a file is not what was
# bound as that.
wanted() {
  newest="$(shown | tr '{' '\n' | sed -n 's/.*"gate":.*"revision":\([0-9]*\).*/\1/p' | sort -n | tail -n 1)"
  newest="${newest:-1}"
  for of in gate-a:design.md gate-b:plan.json; do
    is="$(bound "${of%%:*}" "$newest")"
    if [ -n "$is" ] && [ "$is" != "$(digest "${of#*:}")" ]; then
      newest=$((newest + 1))
      [ "$state" != validating-delivery ] || echo "${of#*:} was changed, so it goes on with revision $newest" >&2
      break
    fi
  done
  echo "$newest"
}

# Asks a person about the design and the plan, and binds what was approved. Asked
# again, it is the same request. 1: somebody has still to answer, or said no.
deliver() {
  approved=0
  for of in gate-a:design.md gate-b:plan.json; do
    gate="${of%%:*}" file="${of#*:}"
    asked="$(onceseal runs deliver "$run" "$gate" "$1" --receipt-file "$file" --ask --json 2>&1)"
    approval="$(echo "$asked" | sed -n 's/.*"approval":"\(apr_[0-9a-f]*\)".*/\1/p')"
    case "$asked" in
      *'"status":"granted"'*)
        onceseal runs deliver "$run" "$gate" "$1" --receipt-file "$file" --approval "$approval" > /dev/null 2>&1
        point "bound-$gate" ;;
      *'"status":"pending"'*)
        echo "to be approved: $file, onceseal approve $approval"
        approved=1 ;;
      *'"items":[]'*)
        # Bound before.
        ;;
      *'"code":"approval_denied"'*)
        echo "not bound: $file was denied; change it, and it is asked anew"
        approved=1 ;;
      *)
        echo "not bound: $file: $asked"
        approved=1 ;;
    esac
  done
  return "$approved"
}

# Plans what was approved and nothing else. That is looked at here: the gate knows
# only that something is bound with this revision.
plan() {
  mkdir -p plans
  cp plan.json "plans/$run"
  if [ "$(digest "plans/$run")" != "$(bound gate-b "$1")" ]; then
    echo "plan.json is not what was approved as revision $1, so it is not planned" >&2
    return 1
  fi
  onceseal tasks plan "$run" "$1" "plans/$run" > /dev/null
}

while :; do
  state="$(field state)"
  point "$state"
  case "$state" in
    created)
      move validating-delivery ;;
    validating-delivery)
      # Planned only if both gates are bound: what a person denied is not.
      revision="$(wanted)"
      if ! deliver "$revision"; then
        move approval-needed
        exit 3
      fi
      plan "$revision"
      point planned
      move ready ;;
    approval-needed)
      onceseal runs command "$run" resume > /dev/null 2>&1 ;;
    ready | running)
      # The most likely event of all: somebody has changed the plan meanwhile.
      if [ "$(planned)" != "$(wanted)" ]; then
        move paused
        continue
      fi
      if [ "$state" = ready ]; then
        move running
        continue
      fi
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
      # Once more as a whole: each task of the plan, and once.
      for task in $(onceseal tasks list "$run" --json | tr '{' '\n' | sed -n 's/.*"task":"\([^"]*\)".*/\1/p'); do
        file="$(onceseal tasks show "$run" "$task" --json | claimed)/$run"
        [ "$(grep -cx "$task" "$file")" -eq 1 ]
      done
      move ready-to-apply ;;
    ready-to-apply)
      move applying ;;
    applying)
      ./once.sh site.apply "$run" "applied/$run" all
      point applied
      move completed ;;
    paused)
      # Whoever worked on it is gone, and left it here.
      if [ "$(planned)" = "$(wanted)" ]; then move ready; else move validating-delivery; fi ;;
    recovering)
      move applying ;;
    completed)
      exit 0 ;;
    *)
      echo "the run is $state" >&2
      exit 1 ;;
  esac
done
