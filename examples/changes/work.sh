#!/bin/sh
# Does a task: its line is written once.
set -eu
. ./lib.sh
point "begun-$ONCESEAL_TASK"
./once.sh site.write "$ONCESEAL_RUN" "$SITE/lines" "$ONCESEAL_TASK"
cp "$SITE/lines" "$ONCESEAL_EVIDENCE"
point "done-$ONCESEAL_TASK"
