#!/bin/sh
# Does a task: its line is written once, where the plan says that it writes.
set -eu
. ./lib.sh
file="$(claimed)/$ONCESEAL_RUN"
point "begun-$ONCESEAL_TASK"
./once.sh site.write "$ONCESEAL_RUN" "$file" "$ONCESEAL_TASK"
cp "$file" "$ONCESEAL_EVIDENCE"
point "done-$ONCESEAL_TASK"
